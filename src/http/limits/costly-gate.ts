export type { AdmissionQueue as CostlyGate } from "./admission-queue.ts";
