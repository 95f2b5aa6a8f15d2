import { expect, test } from "vitest";
import { toAcknowledgedMessage, toResolvedMessage } from "#alerts/rules/act-on-alert.ts";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { incidentWith, messageOf } from "../delivery/support/messages.ts";

const act = { by: "alice", note: "on it", atMs: Date.UTC(2026, 10, 21, 15) };
const alert: AlertRecord = {
  state: "resolved",
  transition: 3,
  firedAtMs: act.atMs - 60_000,
  resolvedAtMs: act.atMs,
  spikeId: 1,
  transitions: [],
};
const headline = "SQL injection: rule 942100 in zone 101 is spiking, 760 events in 3 min";

test("an acknowledged message names the person and quotes the note", () => {
  const said = toAcknowledgedMessage(messageOf({ headline }), 2, act).headline;
  expect(said).toBe(`Acknowledged by alice (on it): ${headline}`);
  expect(toAcknowledgedMessage(messageOf({ headline }), 2, { ...act, note: null }).headline).toBe(
    `Acknowledged by alice: ${headline}`,
  );
});

test("a later note names the person who acknowledged the alert, once", () => {
  const say = (takenBy: string) =>
    toAcknowledgedMessage(messageOf({ headline }), 3, { ...act, takenBy }).headline;
  expect(say("bob")).toBe(`Acknowledged by bob, note by alice (on it): ${headline}`);
  expect(say("alice")).toBe(`Acknowledged by alice (on it): ${headline}`);
});

test("the message of an alert that a person resolved does not say that it is spiking", () => {
  expect(toResolvedMessage(messageOf({ headline }), alert, act).headline).toBe(
    "Resolved by alice (on it): SQL injection: rule 942100 in zone 101",
  );
  expect(toResolvedMessage(incidentWith(5), alert, { ...act, note: null }).headline).toBe(
    "Resolved by alice: incident in zone 101",
  );
});

test("a long note is cut so that the headline keeps its subject", () => {
  const said = toResolvedMessage(messageOf(), alert, { ...act, note: "💥".repeat(500) }).headline;
  expect(said).toMatch(/💥…\): SQL injection: rule 942100 in zone 101$/u);
  expect(said.isWellFormed()).toBe(true);
  expect(Array.from(said).length).toBeLessThan(220);
});
