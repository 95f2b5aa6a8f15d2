import { DeliveryError } from "../delivery/delivery-error.ts";
import type { Notifier } from "../delivery/notifier.ts";
import type { Metrics } from "../http/metrics.ts";

/** The same channel, its attempts counted by how they ended: delivered, the error's code, or aborted. */
export function measureNotifier(notifier: Notifier, metrics: Metrics): Notifier {
  const ended = (outcome: string) => metrics.notifications.inc({ channel: notifier.name, outcome });
  return {
    name: notifier.name,
    kind: notifier.kind,
    capabilities: notifier.capabilities,
    async send(message, options) {
      try {
        const result = await notifier.send(message, options);
        ended("delivered");
        return result;
      } catch (thrown) {
        ended(thrown instanceof DeliveryError ? thrown.code.toLowerCase() : "aborted");
        throw thrown;
      }
    },
  };
}
