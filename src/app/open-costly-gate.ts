export { openAdmissionQueue as openCostlyGate } from "./open-admission-queue.ts";
