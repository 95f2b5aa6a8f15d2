import { describe, expect, test } from "vitest";
import {
  alertmanager,
  toAlertmanagerAlerts,
} from "#delivery/receivers/channels/alertmanager/alertmanager.ts";
import { createSecret } from "#lib/secret.ts";
import { DAY_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { hostileMessage, incidentWith, messageOf, messageSaying } from "../../support/messages.ts";
import { NOW, sendOptions } from "../../support/receiver.ts";
import { findAlertmanager, startAlertmanager } from "./alertmanager-process.ts";
import { alertmanagerRequest } from "./schema.ts";

const options = { atMs: NOW, posted: null, firingForMs: DAY_MS };
const render = (message: AlertMessage) => toAlertmanagerAlerts(message, options);

describeFormat("alertmanager", render, alertmanagerRequest);

test("the posted texts have no markup and no mention (F71)", () => {
  for (const text of Object.values(HOSTILE)) {
    const shown = stringsOf(render(messageSaying(text))).join("\n");
    expect(shown).not.toMatch(/[<>&`]|@(?=\w)/);
  }
});

test("every transition of an alert has the same labels", () => {
  const labels = (over: Partial<AlertMessage>) => render(messageOf(over)).map((alert) => alert.labels);
  const first = labels({});
  expect(first).toEqual([
    {
      alertname: "LongwatchSpike",
      severity: "critical",
      fingerprint: "f1c0ffee",
      zone_id: "101",
      rule_id: "942100",
    },
  ]);
  for (const reason of ["repeat", "advice", "resolved"] as const) {
    expect(labels({ reason, headline: "other", count: 9, transition: 3 })).toEqual(first);
  }
});

test("a firing alert ends after the resend interval, and a resolved alert at its end, never later than now", () => {
  const span = (over: Partial<AlertMessage>) => {
    const [alert] = render(messageOf(over));
    return [alert?.startsAt, alert?.endsAt];
  };
  expect(span({})).toEqual(["2026-11-21T14:03:00.000Z", "2026-11-22T14:10:00.000Z"]);
  const endedAt = NOW - 60_000;
  expect(span({ reason: "resolved", state: "resolved", endedAt })[1]).toBe("2026-11-21T14:09:00.000Z");
  expect(span({ reason: "resolved", state: "resolved", endedAt: NOW + 1e9 })[1]).toBe(
    "2026-11-21T14:10:00.000Z",
  );
  expect(span({ reason: "resolved", state: "resolved", endedAt: null, startedAt: NOW + 5 })).toEqual([
    "2026-11-21T14:10:00.000Z",
    "2026-11-21T14:10:00.000Z",
  ]);
});

test("a severity that changed ends the alert under the old one in the same request", () => {
  const alerts = toAlertmanagerAlerts(messageOf({ reason: "worse" }), { ...options, posted: "warning" });
  expect(alerts.map(({ labels, endsAt }) => [labels.severity, endsAt])).toEqual([
    ["warning", "2026-11-21T14:10:00.000Z"],
    ["critical", "2026-11-22T14:10:00.000Z"],
  ]);
  const resolved = toAlertmanagerAlerts(messageOf({ reason: "resolved", ...ENDED }), {
    ...options,
    posted: "warning",
  });
  expect(resolved.map(({ labels }) => labels.severity)).toEqual(["warning"]);
});

test("configured labels are added, and Longwatch's own labels win", () => {
  const [alert] = toAlertmanagerAlerts(messageOf(), {
    ...options,
    labels: { team: "edge", severity: "none" },
  });
  expect(alert?.labels).toMatchObject({ team: "edge", severity: "critical" });
});

const program = findAlertmanager();

describe.skipIf(program === null)(
  `a real Alertmanager${program === null ? " (skipped: none is installed)" : ""}`,
  () => {
    test("has one alert for an incident, before and after it has 5,000 rules, and none after its end", async () => {
      const receiver = await startAlertmanager(program ?? "");
      try {
        const notifier = alertmanager.open({
          name: "prom",
          url: createSecret(receiver.url),
          clock: Date.now,
          network: { allowPrivateNetworks: true },
        });
        const startedAt = Date.now() - 60_000;
        const send = async (over: Partial<AlertMessage>, providerReference: string | null) => {
          await notifier.send(
            incidentWith(5_000, { startedAt, ...over }),
            sendOptions({ providerReference }),
          );
          const alerts = await receiver.alerts();
          return alerts.map(({ labels }) => labels);
        };
        const alone = await send({ severity: "error", members: undefined }, null);
        const firing = await send({ severity: "error", reason: "join" }, "error");
        expect(firing).toEqual(alone);
        expect(firing).toMatchObject([{ alertname: "LongwatchSources", severity: "error" }]);
        const worse = await send({ severity: "critical", reason: "worse" }, "error");
        expect(worse.map((labels) => labels["severity"])).toEqual(["critical"]);
        const end = { reason: "resolved", state: "resolved", endedAt: Date.now() } as const;
        expect(await send({ ...end, severity: "critical" }, "critical")).toEqual([]);
      } finally {
        await receiver.stop();
      }
    });

    test("accepts a firing alert, the same alert twice, a worse one and a resolved one", async () => {
      const receiver = await startAlertmanager(program ?? "");
      try {
        const notifier = alertmanager.open({
          name: "prom",
          url: createSecret(receiver.url),
          clock: Date.now,
          network: { allowPrivateNetworks: true },
        });
        const startedAt = Date.now() - 60_000;
        const send = async (over: Partial<AlertMessage>, providerReference: string | null) => {
          const message = hostileMessage({ startedAt, severity: "warning", ...over });
          const sent = await notifier.send(message, sendOptions({ providerReference }));
          const alerts = await receiver.alerts();
          return { ...sent, firing: alerts.map(({ labels }) => labels.severity) };
        };

        expect(await send({}, null)).toEqual({ providerReference: "warning", firing: ["warning"] });
        expect(await send({}, null)).toEqual({ providerReference: "warning", firing: ["warning"] });
        const worse = await send({ reason: "worse", severity: "critical" }, "warning");
        expect(worse).toEqual({ providerReference: "critical", firing: ["critical"] });
        const ended = {
          reason: "resolved",
          state: "resolved",
          endedAt: Date.now(),
          severity: "critical",
        } as const;
        expect(await send(ended, "critical")).toMatchObject({ firing: [] });
      } finally {
        await receiver.stop();
      }
    });
  },
);
