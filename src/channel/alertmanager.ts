import type { Clock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import { HOUR_MS } from "../lib/units.ts";
import {
  readToldLabels,
  readToldSeverity,
  toAlertmanagerAlerts,
  toAlertmanagerBodies,
  toToldReference,
} from "./alertmanager-alerts.ts";
import { extendEndpoint, openEndpoint } from "./endpoint.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import type { Notifier } from "./notifier.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";

export interface AlertmanagerOptions {
  readonly name: string;
  /** Where its API is, without `/api/v2`. */
  readonly url: Secret;
  /** The whole Authorization header, where something in front of it asks for one. */
  readonly authorization?: Secret | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** How long a firing alert lives without news; longer than the repeat interval. Default 24 hours. */
  readonly firingForMs?: number | undefined;
  readonly clock: Clock;
  readonly network?: NetworkPolicy;
  readonly timeoutMs?: number;
}

export const DEFAULT_FIRING_HOURS = 24;

/**
 * Prometheus Alertmanager, API v2: grouping, silences and receivers are its own. Labels make an alert that arrives twice
 * one. The reference is the severity it was last posted under.
 * @throws {UsageError} for a bad URL
 */
export function createAlertmanagerNotifier(options: AlertmanagerOptions): Notifier {
  const { name, authorization, labels = {}, firingForMs = DEFAULT_FIRING_HOURS * HOUR_MS, clock } = options;
  const endpoint = extendEndpoint(openEndpoint(name, options.url, options.network ?? {}), "/api/v2/alerts");
  return {
    name,
    kind: "alertmanager",
    async send(message, { signal, providerReference }) {
      const told = readToldSeverity(providerReference);
      const toldLabels = readToldLabels(providerReference);
      const alerts = toAlertmanagerAlerts(message, { atMs: clock(), told, toldLabels, firingForMs, labels });
      const bodies = toAlertmanagerBodies(alerts);
      for (const body of bodies) {
        await post(endpoint, {
          headers: authorization === undefined ? {} : { authorization: authorization.reveal() },
          body,
          timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
          clock,
          signal,
          secrets: authorization === undefined ? [] : [authorization],
        });
      }
      const messages = bodies.length;
      return { providerReference: toToldReference(message), ...(messages === 1 ? {} : { messages }) };
    },
  };
}
