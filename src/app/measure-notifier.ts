import type { Metrics } from "#faces/http/metrics.ts";
import { DeliveryError } from "#stages/delivery/delivery-error.ts";
import type { Notifier } from "#stages/delivery/notifier.ts";

/** Returns the channel with its attempts timed and counted by outcome: delivered, the error's code, or aborted. */
export function measureNotifier(notifier: Notifier, metrics: Metrics): Notifier {
  const channel = notifier.name;
  const ended = (outcome: string) => metrics.notifications.inc({ channel, outcome });
  return {
    name: notifier.name,
    kind: notifier.kind,
    capabilities: notifier.capabilities,
    async send(message, options) {
      const stopTimer = metrics.notificationDuration.startTimer({ channel });
      try {
        const result = await notifier.send(message, options);
        ended("delivered");
        return result;
      } catch (thrown) {
        ended(thrown instanceof DeliveryError ? thrown.code.toLowerCase() : "aborted");
        throw thrown;
      } finally {
        stopTimer();
      }
    },
  };
}
