import { inspect } from "node:util";
import { expect, test } from "vitest";
import { azureMonitor } from "#delivery/receivers/sinks/azure-monitor.ts";
import { createSecret } from "#lib/secret.ts";
import { startAzureReceiver } from "../../support/receivers/azure-receiver.ts";
import { failureOf } from "../support/receiver.ts";
import { AZURE, CANARY, eventOf, eventsOf, HOUR, sending, withReceiver, ZONE } from "./world.ts";

async function openAzure({ credential = CANARY, tokenLifeS = 3_600 } = {}) {
  const receiver = await startAzureReceiver({
    ...AZURE,
    clientSecret: CANARY,
    tokenPrefix: CANARY,
    tokenLifeS,
  });
  let nowMs = HOUR;
  const { sink } = withReceiver(receiver, (url) =>
    azureMonitor.open({
      ...AZURE,
      name: "sentinel",
      clock: () => nowMs,
      network: { allowPrivateNetworks: true },
      url,
      authority: url,
      audience: "https://monitor.azure.com",
      clientSecret: createSecret(credential),
    }),
  );
  return { receiver, sink, setNow: (ms: number) => void (nowMs = ms) };
}

test("a row has the time, the id, the zone, the rule, the action and the event as an object", async () => {
  const { receiver, sink } = await openAzure();
  const fields = { ruleId: "942100", action: "block" };
  await sink.send([eventOf("a", { n: 1 }, { fields })], sending());
  const posted = receiver.requests.at(-1);
  expect(posted?.headers).toMatchObject({ "content-encoding": "gzip", authorization: `Bearer ${CANARY}.1` });
  expect(JSON.parse(posted?.text ?? "")).toEqual([
    {
      TimeGenerated: "2026-11-21T14:00:01.234Z",
      LongwatchId: `${ZONE}-a`,
      Zone: ZONE,
      Rule: "942100",
      Action: "block",
      Event: { id: `${ZONE}-a`, n: 1 },
    },
  ]);
});

test("one token serves all batches until shortly before it ends", async () => {
  const { receiver, sink, setNow } = await openAzure();
  await Promise.all([1, 2, 3, 4].map(() => sink.send(eventsOf(2), sending())));
  setNow(HOUR + 3_299_000);
  await sink.send(eventsOf(2), sending());
  expect(receiver.issued()).toBe(1);
  setNow(HOUR + 3_300_000);
  await sink.send(eventsOf(2), sending());
  expect(receiver.issued()).toBe(2);
});

test("a token that is refused is replaced, once for all batches, and no event is lost or late", async () => {
  const { receiver, sink } = await openAzure();
  await sink.send(eventsOf(1), sending());
  receiver.tokens.clear();
  const sent = await Promise.all(
    [1, 2, 3].map((part) => sink.send([eventOf(`p${part}a`), eventOf(`p${part}b`)], sending())),
  );
  expect(sent).toEqual(sent.map(() => ({ refused: [], postponed: [], waitMs: null })));
  expect(receiver.stored.size).toBe(7);
  expect(receiver.issued()).toBe(2);
});

test("a client that the sign-in refuses is a mistake of the settings, and its secret is not shown", async () => {
  const { sink } = await openAzure({ credential: `${CANARY}-wrong` });
  const error = await failureOf(sink.send(eventsOf(1), sending()));
  expect(error).toMatchObject({
    code: "ENDPOINT_REJECTED",
    disposition: "give-up",
    message: expect.stringMatching(
      / answered 401, invalid_client, AADSTS7000215: check tenant_id, client_id/,
    ),
  });
  expect(inspect(error)).not.toContain(CANARY);
});

test("an event of which Azure Monitor would cut a value is refused, and a shorter one is not", async () => {
  const { receiver, sink } = await openAzure();
  const events = [eventOf("a", { text: "x".repeat(65_000) }), eventOf("b", { text: "x".repeat(66_600) })];
  expect(await sink.send(events, sending())).toMatchObject({
    refused: [{ index: 1, reason: expect.stringContaining("the event is too large") }],
  });
  expect([...receiver.stored.keys()]).toEqual([`${ZONE}-a`]);
});

test("every mistake of the addresses is named at once, the sign-in's too", () => {
  expect(() =>
    azureMonitor.open({
      ...AZURE,
      name: "sentinel",
      clock: Date.now,
      url: "http://10.0.0.1",
      authority: "https://user@127.0.0.1",
      audience: "https://monitor.azure.com",
      clientSecret: createSecret(CANARY),
    }),
  ).toThrow(
    /authority: must not hold a user.*\n.*authority: 127\.0\.0\.1 is not a public.*\n.*url: must be https/s,
  );
});
