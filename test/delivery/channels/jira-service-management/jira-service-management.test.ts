import { afterEach, beforeEach, expect, test } from "vitest";
import {
  jiraServiceManagement,
  toJiraRequests,
} from "#delivery/receivers/channels/jira-service-management/jira-service-management.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { messageOf } from "../../support/messages.ts";
import { CANARY, failureOf, sendOptions } from "../../support/receiver.ts";
import { startOperationsServer } from "./operations-server.ts";
import { jiraRequests } from "./schema.ts";

describeFormat("jira-service-management", toJiraRequests, jiraRequests);

const WORSE = { reason: "worse", transition: 2, severity: "critical", headline: "much worse" } as const;
const TAKEN = { reason: "acknowledged", state: "acknowledged", headline: "Acknowledged by alice" } as const;

let server: Awaited<ReturnType<typeof startOperationsServer>>;
beforeEach(async () => {
  server = await startOperationsServer(CANARY);
});
afterEach(() => server.close());

function send(over: Partial<AlertMessage>, key = CANARY) {
  const options = { name: "jira", apiKey: createSecret(key), url: server.url, clock: Date.now };
  const channel = jiraServiceManagement.open({ ...options, network: { allowPrivateNetworks: true } });
  return channel.send(messageOf(over), sendOptions());
}

test("an alert that gets worse has a note instead of another priority", () => {
  const asked = toJiraRequests(messageOf(WORSE)).map(({ method, path }) => `${method} ${path}`);
  expect(asked).toEqual(["POST /v2/alerts", "POST /v2/alerts/episode-7/notes"]);
});

test("one alert is opened, noted, acknowledged and closed by its alias", async () => {
  await send({ severity: "warning" });
  await send(WORSE);
  expect(server.alerts).toMatchObject([{ alias: "episode-7", priority: "P3", status: "open", count: 2 }]);
  expect(server.alerts[0]?.notes).toEqual([expect.stringContaining("much worse")]);
  await send(TAKEN);
  expect(server.alerts).toMatchObject([{ status: "acknowledged" }]);
  await send({ reason: "resolved", ...ENDED });
  expect(server.alerts).toMatchObject([{ status: "closed" }]);
});

test("every transition that is sent twice leaves one alert", async () => {
  for (const over of [{}, {}, WORSE, WORSE, TAKEN, TAKEN, { reason: "resolved", ...ENDED } as const])
    await send(over);
  await send({ reason: "resolved", ...ENDED });
  expect(server.alerts).toMatchObject([{ alias: "episode-7", status: "closed" }]);
});

test("a failure between two requests is tried again, and the alert stays one", async () => {
  server.faults.push(202, 503);
  expect(await failureOf(send(WORSE))).toMatchObject({ disposition: "retry" });
  await send(WORSE);
  expect(server.alerts).toMatchObject([{ alias: "episode-7", count: 1 }]);
});

test("a wrong key is given up, and the error does not hold the key", async () => {
  const error = await failureOf(send({}, "another-key"));
  expect(error).toMatchObject({ disposition: "give-up" });
  expect(error.message).not.toContain("another-key");
  expect(server.alerts).toEqual([]);
});
