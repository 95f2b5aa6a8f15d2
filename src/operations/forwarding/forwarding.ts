import { listForwarded } from "./hours.ts";
import { listRefused } from "./refused.ts";
import { retryForwarding } from "./retry.ts";
import { sendAgain } from "./send-again.ts";
import { showForwarding } from "./status.ts";
import { verifyForwarding } from "./verify.ts";

export const forwardOperations = [
  showForwarding,
  listForwarded,
  listRefused,
  retryForwarding,
  sendAgain,
  verifyForwarding,
] as const;
