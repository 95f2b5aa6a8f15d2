import { z } from "zod";
import { HOUR_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post } from "../../post.ts";
import {
  MAX_BODY_BYTES,
  MEMBER_ROWS,
  readPostedLabels,
  readPostedSeverity,
  toAlertmanagerAlerts,
  toAlertmanagerBodies,
  toPostedReference,
} from "./alertmanager-alerts.ts";

const DEFAULT_FIRING_HOURS = 24;

const settings = {
  /** Address of Alertmanager, without `/api/v2`. */
  url: secretText,
  /** The whole Authorization header, such as `Bearer ...`, if a proxy in front of Alertmanager requires one. */
  authorization: secretText.optional(),
  /** Labels for every alert. */
  labels: z.record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string().min(1).max(200)).optional(),
  /** Time that Alertmanager keeps a firing alert that is not sent again, for example because Longwatch is down. */
  firingForHours: z.number().min(1).max(168).optional(),
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/**
 * Sends to Prometheus Alertmanager, API v2, which does its own grouping, silencing and routing. An alert that arrives
 * twice has the same labels and stays one alert. The reference is the severity under which the alert was last posted.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const { name, authorization, labels = {}, firingForHours = DEFAULT_FIRING_HOURS, clock } = options;
  const firingForMs = firingForHours * HOUR_MS;
  const endpoint = extendEndpoint(openEndpoint(name, options.url, options.network ?? {}), "/api/v2/alerts");
  return async (message, { signal, providerReference }) => {
    const posted = readPostedSeverity(providerReference);
    const postedLabels = readPostedLabels(providerReference);
    const alerts = toAlertmanagerAlerts(message, {
      atMs: clock(),
      posted,
      postedLabels,
      firingForMs,
      labels,
    });
    const bodies = toAlertmanagerBodies(alerts);
    for (const body of bodies) {
      await post(endpoint, {
        headers: authorization === undefined ? {} : { authorization: authorization.reveal() },
        body,
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock,
        signal,
        // A page of a proxy in front of Alertmanager is an answer of 200 as well.
        confirms: ({ body: answer }) => answer.trim() === "",
        secrets: authorization === undefined ? [] : [authorization],
      });
    }
    const messages = bodies.length;
    return { providerReference: toPostedReference(message), ...(messages === 1 ? {} : { messages }) };
  };
}

function renderAlertmanager(message: AlertMessage, atMs: number): readonly string[] {
  const firingForMs = DEFAULT_FIRING_HOURS * HOUR_MS;
  return toAlertmanagerBodies(toAlertmanagerAlerts(message, { atMs, posted: null, firingForMs }));
}

export const alertmanager = defineChannel({
  kind: "alertmanager",
  settings,
  example: {
    url: "https://alerts.example/example-path",
    authorization: "Bearer example-token",
    labels: { team: "edge" },
    firingForHours: 24,
  },
  capabilities: {
    rate: { perMinute: 600, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: false,
    // Half of the shortest firing_for_hours.
    renewAfterMs: HOUR_MS / 2,
    limits: { message: { most: MAX_BODY_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderAlertmanager,
  createSender,
});
