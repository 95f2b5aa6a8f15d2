import { describe, expect, test } from "vitest";
import { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import type { Fault, Receiver } from "../../support/receivers/receiver.ts";
import { failureOf } from "../support/receiver.ts";
import { CANARY, eventOf, eventsOf, idsOf, open, POSTING, type PostingKind, sending, ZONE } from "./world.ts";

/** Requests with events. Elasticsearch gets an index template before them, Azure Monitor's client a token. */
const posted = ({ requests }: Pick<Receiver, "requests">) =>
  requests.filter(({ method, path }) => method === "POST" && !path.endsWith("/token"));
const STORED = { refused: [], postponed: [], waitMs: null };

async function deliveryErrorOf(sent: Promise<unknown>): Promise<DeliveryError> {
  const error = await failureOf(sent);
  if (!(error instanceof DeliveryError)) throw error;
  expect(error.message).not.toContain(CANARY);
  return error;
}

/** Fails the first request only. */
function once(fault: Fault): () => Fault | null {
  let isFirst = true;
  return () => {
    const next = isFirst ? fault : null;
    isFirst = false;
    return next;
  };
}

describe.each(Object.keys(POSTING) as PostingKind[])("%s", (kind) => {
  test("500 events arrive in one request, each with its body", async () => {
    const { receiver, sink } = await open(kind);
    const events = eventsOf(500);
    expect(await sink.send(events, sending())).toEqual(STORED);
    expect(posted(receiver)).toHaveLength(1);
    expect([...receiver.stored.keys()]).toEqual(idsOf(events));
    expect(receiver.stored.get(`${ZONE}-e7`)).toMatchObject({ id: `${ZONE}-e7` });
  });

  test("hostile text arrives unchanged", async () => {
    const { receiver, sink } = await open(kind);
    const hostile = {
      lines: "a\r\nb\u2028c\u2029d\u0085",
      quotes: `"}{"create":{}}\\"`,
      controls: "\u0000\u001b[2J\u202e",
      unicode: "😀\ud800é",
      markup: "<script>&amp;</script>",
      deep: { __proto__x: [1, null, true, 1e-7] },
    };
    const events = [
      eventOf("hostile", hostile),
      eventOf("empty-text", { text: "" }),
      { ...eventOf("pretty"), body: `{\n  "id": "${ZONE}-pretty",\r\n  "a": 1\n}\n` },
    ];
    expect(await sink.send(events, sending())).toEqual(STORED);
    const { unicode, ...others } = hostile;
    expect(receiver.stored.get(`${ZONE}-hostile`)).toMatchObject(others);
    expect(receiver.stored.get(`${ZONE}-hostile`)).toMatchObject({ unicode });
    expect(receiver.stored.get(`${ZONE}-pretty`)).toMatchObject({ a: 1 });
    expect(receiver.stored.size).toBe(3);
  });

  test("an event that the receiver refuses is named with the reason, and all others arrive", async () => {
    const { receiver, sink } = await open(kind);
    const events = eventsOf(100);
    receiver.fail((ids) => ({ is: "partial", refused: ids.filter((id) => /-e(?:0|37|99)$/.test(id)) }));
    const answer = await sink.send(events, sending());
    expect(answer.refused.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 37, 99]);
    for (const { reason } of answer.refused) expect(reason).toMatch(/invalid|failed to parse/i);
    expect(answer.postponed).toEqual([]);
    expect(receiver.stored.size).toBe(97);
  });

  test("a request that is too large for the receiver is halved, and an event that is too large is refused", async () => {
    const { receiver, sink } = await open(kind);
    receiver.maxBytes = 20_000;
    const events = [...eventsOf(200), eventOf("big", { text: "x".repeat(30_000) })];
    const answer = await sink.send(events, sending());
    expect(answer.refused).toEqual([
      { index: 200, reason: expect.stringMatching(/^the event is too large: 3\d{4} bytes$/) },
    ]);
    expect(receiver.stored.size).toBe(200);
  });

  test("a batch beyond the size of one request is sent in two, and an event beyond it is refused unsent", async () => {
    const { receiver, sink } = await open(kind);
    const { maxBytes, maxEventBytes = maxBytes }: { maxBytes: number; maxEventBytes?: number } =
      POSTING[kind];
    const sized = (logId: string, bytes: number) => eventOf(logId, { text: "x".repeat(bytes) });
    const some = Math.ceil((1.3 * maxBytes) / (0.45 * maxEventBytes));
    const fitting = Array.from({ length: some }, (_, at) => sized(`e${at}`, 0.45 * maxEventBytes));
    const events = fitting.toSpliced(1, 0, sized("big", maxEventBytes));
    const answer = await sink.send(events, sending());
    expect(answer.refused).toEqual([
      { index: 1, reason: expect.stringContaining(`at most ${maxEventBytes} are sent`) },
    ]);
    expect([...receiver.stored.keys()]).toEqual(idsOf(fitting));
    expect(posted(receiver)).toHaveLength(2);
    for (const { text } of posted(receiver)) expect(text.length).toBeLessThan(maxBytes + 300);
  });

  test.each([429, 503])("status %s with Retry-After says how long to wait", async (status) => {
    const { receiver, sink } = await open(kind);
    receiver.fail(() => ({ is: "status", status, retryAfter: "17" }));
    const error = await deliveryErrorOf(sink.send(eventsOf(3), sending()));
    expect(error).toMatchObject({ code: "ENDPOINT_BUSY", disposition: "wait", waitMs: 17_000 });
    expect(receiver.stored.size).toBe(0);
  });

  test.each([
    [401, "give-up"],
    [403, "give-up"],
    [302, "give-up"],
    [500, "retry"],
  ] as const)("status %s means %s", async (status, disposition) => {
    const { receiver, sink } = await open(kind);
    receiver.fail(() => ({ is: "status", status }));
    expect(await deliveryErrorOf(sink.send(eventsOf(3), sending()))).toMatchObject({ disposition });
    // A token that is refused is replaced once.
    expect(posted(receiver)).toHaveLength(kind === "azure-monitor" && status === 401 ? 2 : 1);
  });

  test("a wrong credential is given up", async () => {
    const { sink, receiver } = await open(kind, { credential: "wrong" });
    expect(await deliveryErrorOf(sink.send(eventsOf(1), sending()))).toMatchObject({
      code: "ENDPOINT_REJECTED",
      disposition: "give-up",
    });
    expect(receiver.stored.size).toBe(0);
  });

  test.each(["cut-before", "cut-after"] as const)(
    "after a connection that was %s, the second attempt completes the batch",
    async (is) => {
      const { receiver, sink } = await open(kind);
      receiver.fail(once({ is }));
      const events = eventsOf(20);
      expect(await deliveryErrorOf(sink.send(events, sending()))).toMatchObject({
        code: "ENDPOINT_UNREACHABLE",
        disposition: "retry",
      });
      expect(receiver.stored.size).toBe(is === "cut-before" ? 0 : 20);
      expect(await sink.send(events, sending())).toEqual(STORED);
      expect([...receiver.stored.keys()]).toEqual(idsOf(events));
    },
  );

  test("a receiver that is stopped, and listens again on its port, gets the batch", async () => {
    const { receiver, sink } = await open(kind);
    await receiver.stop();
    expect(await deliveryErrorOf(sink.send(eventsOf(2), sending()))).toMatchObject({ disposition: "retry" });
    await receiver.start();
    expect(await sink.send(eventsOf(2), sending())).toEqual(STORED);
  });

  test("an answer after the time limit is a failure", async () => {
    const { receiver, sink } = await open(kind, { timeoutMs: 100 });
    receiver.fail(() => ({ is: "slow", ms: 400 }));
    expect(await deliveryErrorOf(sink.send(eventsOf(2), sending()))).toMatchObject({
      code: "ENDPOINT_TIMEOUT",
    });
  });

  test("if the receiver fails after a part of the batch, the rest is postponed", async () => {
    const { receiver, sink } = await open(kind);
    receiver.maxBytes = 20_000;
    let asked = 0;
    receiver.fail(() => ((asked += 1) === 2 ? { is: "status", status: 429, retryAfter: "5" } : null));
    const events = Array.from({ length: 400 }, (_, at) => eventOf(`e${at}`, { text: "x".repeat(100) }));
    const answer = await sink.send(events, sending());
    expect(answer.waitMs).toBe(5_000);
    expect(answer.postponed.length).toBeGreaterThan(0);
    expect(receiver.stored.size + answer.postponed.length).toBe(400);
  });

  test("a receiver that refuses every event of a large batch is a failure, and no event is given up", async () => {
    const { receiver, sink } = await open(kind);
    receiver.fail(() => ({ is: "status", status: 400, body: "nothing pleases me" }));
    const error = await deliveryErrorOf(sink.send(eventsOf(500), sending()));
    expect(error).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
    expect(posted(receiver).length).toBe(100);
  });

  test("an aborted attempt ends with the signal's reason", async () => {
    const { receiver, sink } = await open(kind);
    const controller = new AbortController();
    const reason = new Error("the service stops");
    receiver.fail(() => {
      controller.abort(reason);
      return { is: "slow", ms: 50 };
    });
    await expect(sink.send(eventsOf(1), sending({ signal: controller.signal }))).rejects.toBe(reason);
  });

  test("a reason has at most 300 characters, is one line and holds no secret", async () => {
    const { receiver, sink } = await open(kind);
    const body = `bad\n\u001b[31m ${kind === "webhook" ? `/${CANARY}` : CANARY} ${"long ".repeat(200)}`;
    receiver.fail(() => ({ is: "status", status: 400, body }));
    const { refused } = await sink.send(eventsOf(1), sending());
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason.length).toBeLessThanOrEqual(300);
    // oxlint-disable-next-line no-control-regex
    expect(refused[0]?.reason).not.toMatch(/[\n\u001b]/);
    expect(refused[0]?.reason).not.toContain(CANARY);
  });
});

test.each(["splunk", "elastic", "otlp", "loki", "azure-monitor"] as const)(
  "an answer of another program with status 200 is no acknowledgement of %s",
  async (kind) => {
    const { receiver, sink } = await open(kind);
    receiver.fail(() => ({ is: "foreign-answer" }));
    expect(await deliveryErrorOf(sink.send(eventsOf(2), sending()))).toMatchObject({
      code: "ENDPOINT_UNAVAILABLE",
      disposition: "retry",
    });
  },
);
