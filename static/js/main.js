// Starts the page: its small helpers at once, htmx when it is there. Until then every form works as a plain form.
import { loadAssets } from "./assets.js";
import { watchApprovals, watchInside } from "./approvals.js";
import { watchComposer } from "./composer.js";
import { watchCountdowns } from "./countdown.js";
import { watchDrawer } from "./drawer.js";
import { keepFocus } from "./focus.js";
import { keepPlace } from "./place.js";
import { watchPreview } from "./preview.js";
import { configure } from "./requests.js";
import { keepScroll } from "./scroll.js";
import { watchState } from "./state.js";
import { watchSteps } from "./stepper.js";
import { connect, watchConnection } from "./stream.js";

configure();
watchApprovals();
watchInside();
watchComposer();
watchCountdowns();
watchDrawer();
watchState();
keepPlace();
keepScroll();
keepFocus();
watchPreview();
watchSteps();
watchConnection();
if (await loadAssets()) connect();
