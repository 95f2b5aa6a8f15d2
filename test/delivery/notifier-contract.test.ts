import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { terminal } from "#delivery/receivers/channels/terminal/terminal.ts";
import { ServiceError } from "#lib/errors.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { messageOf } from "./support/messages.ts";
import {
  ANSWERS,
  CANARY,
  failureOf,
  PLAIN_ANSWER,
  POSTING,
  SIGNING_SECRET,
  sendOptions,
} from "./support/receiver.ts";

let receiver: ReplyQueue;

beforeEach(async () => {
  receiver = await startReplyQueue();
});

afterEach(() => receiver.close());

/** Everything a log line, a stack trace or a crash dump could show of an error. */
function everythingOf(error: Error): string {
  const own = JSON.stringify(error, Object.getOwnPropertyNames(error));
  return `${inspect(error, { depth: 20, showHidden: true, getters: true })}${own}${error.stack}`;
}

function expectNoSecret(text: string): void {
  const secrets = [CANARY, SIGNING_SECRET.slice("whsec_".length)];
  const encoded = secrets.flatMap((secret) => [
    Buffer.from(secret).toString("base64url"),
    encodeURIComponent(secret),
  ]);
  for (const secret of [...secrets, ...encoded]) expect(text).not.toContain(secret);
}

/** Words of the address and of a kind's other secrets that a provider could answer with. */
const PIECES: Readonly<Record<string, readonly string[]>> = {
  alertmanager: ["xoxcanary", "earer"],
  opsgenie: ["xoxcanary", "genie"],
  "jira-service-management": ["xoxcanary", "genie"],
};

function mistakeOf(open: () => unknown): Error {
  try {
    open();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it was accepted");
}

describe.each(Object.entries(POSTING))("%s", (kind, open) => {
  const answer = ANSWERS[kind] ?? PLAIN_ANSWER;

  test.each([200, 201, 202])("takes %i for delivered", async (status) => {
    receiver.reply(status, answer.body);
    expect(await open(receiver.url).send(messageOf(), sendOptions())).toEqual({
      providerReference: answer.reference,
    });
  });

  test
    .skipIf(kind === "webhook")
    .each([
      "<html><title>Sign in</title>",
      "Webhook message delivery failed.",
      '{"status":"error"}',
      '{"ok":false,"error":"internal_error"}',
    ])("does not take 200 with %s for delivered", async (body) => {
    receiver.reply(200, body);
    const error = await failureOf(open(receiver.url).send(messageOf(), sendOptions()));
    expect(error).toMatchObject({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry" });
    expect(error.message).not.toContain(body);
  });

  test.each([
    [301, "give-up", "ENDPOINT_REDIRECTED"],
    [302, "give-up", "ENDPOINT_REDIRECTED"],
    [304, "give-up", "ENDPOINT_REDIRECTED"],
    [307, "give-up", "ENDPOINT_REDIRECTED"],
    [308, "give-up", "ENDPOINT_REDIRECTED"],
    [400, "give-up", "ENDPOINT_REJECTED"],
    [401, "give-up", "ENDPOINT_REJECTED"],
    [403, "give-up", "ENDPOINT_REJECTED"],
    [404, "give-up", "ENDPOINT_REJECTED"],
    [408, "retry", "ENDPOINT_UNAVAILABLE"],
    [410, "give-up", "ENDPOINT_GONE"],
    [413, "give-up", "ENDPOINT_REJECTED"],
    [425, "retry", "ENDPOINT_UNAVAILABLE"],
    [429, "wait", "ENDPOINT_BUSY"],
    [500, "retry", "ENDPOINT_UNAVAILABLE"],
    [501, "retry", "ENDPOINT_UNAVAILABLE"],
    [502, "wait", "ENDPOINT_BUSY"],
    [503, "retry", "ENDPOINT_UNAVAILABLE"],
    [504, "wait", "ENDPOINT_BUSY"],
    [599, "retry", "ENDPOINT_UNAVAILABLE"],
  ])("answers %i with %s and %s (F62)", async (status, disposition, code) => {
    receiver.reply(status, "no", { location: `${receiver.url}/elsewhere` });
    const error = await failureOf(open(receiver.url).send(messageOf(), sendOptions()));

    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ disposition, code, waitMs: undefined });
    expect(receiver.requests).toHaveLength(1);
  });

  test.each([429, 502, 503, 504])(
    "waits as long as a %i says, in seconds or until a date",
    async (status) => {
      const notifier = open(receiver.url);
      receiver.reply(status, "", { "retry-after": "17" });
      const date = { date: "Sat, 21 Nov 2026 14:00:00 GMT", "retry-after": "Sat, 21 Nov 2026 14:02:00 GMT" };
      receiver.reply(status, "", date);

      const seconds = await failureOf(notifier.send(messageOf(), sendOptions()));
      const until = await failureOf(notifier.send(messageOf(), sendOptions()));

      expect(seconds).toMatchObject({ disposition: "wait", waitMs: 17_000 });
      expect(until).toMatchObject({ disposition: "wait", waitMs: 120_000 });
    },
  );

  test("a junk Retry-After is none", async () => {
    receiver.reply(429, "", { "retry-after": "soon-ish" });
    const error = await failureOf(open(receiver.url).send(messageOf(), sendOptions()));
    expect(error).toMatchObject({ disposition: "wait", waitMs: undefined });
  });

  test("a provider's error word is repeated, any other reply is not", async () => {
    receiver.reply(400, "invalid_blocks");
    receiver.reply(400, "<html>\u001b[31m invalid_blocks");
    const notifier = open(receiver.url);

    expect((await failureOf(notifier.send(messageOf(), sendOptions()))).message).toMatch(
      / 400, invalid_blocks$/,
    );
    expect((await failureOf(notifier.send(messageOf(), sendOptions()))).message).toMatch(/ 400$/);
  });

  test("a word that is a piece of the address or of a secret is not taken for the provider's (F70)", async () => {
    const notifier = open(receiver.url);
    for (const word of PIECES[kind] ?? ["xoxcanary"]) {
      receiver.reply(400, word);
      const { message } = await failureOf(notifier.send(messageOf(), sendOptions()));
      expect(message).toMatch(/ 400$/);
    }
  });

  test("a reply lost after the body was read is retried with the same bytes but the time (F61)", async () => {
    receiver.handle((response) => void response.socket?.destroy());
    receiver.reply(200, answer.body);
    const notifier = open(receiver.url);

    const error = await failureOf(notifier.send(messageOf(), sendOptions()));
    await notifier.send(messageOf(), sendOptions({ attempt: 2 }));

    expect(error).toMatchObject({ disposition: "retry", code: "ENDPOINT_UNREACHABLE" });
    const [first, second] = receiver.requests.map(({ headers, body }) => ({
      id: headers["webhook-id"],
      data: JSON.parse(body).data ?? JSON.parse(body),
    }));
    expect(first?.data).toBeDefined();
    expect(second).toEqual(first);
  });

  test("a reply cut after its status counts by its status, where that says anything", async () => {
    receiver.handle((response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("o", () => response.socket?.destroy());
    });
    const sent = open(receiver.url).send(messageOf(), sendOptions());
    expect(await sent.catch((error: unknown) => error)).toMatchObject(answer.cut);
  });

  test("a refused connection is retried", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");

    const error = await failureOf(open(`http://127.0.0.1:${port}`).send(messageOf(), sendOptions()));
    expect(error).toMatchObject({ disposition: "retry", code: "ENDPOINT_UNREACHABLE" });
    expectNoSecret(everythingOf(error));
  });

  test("silence ends with the deadline, a drip of an error too", async () => {
    receiver.handle(() => {});
    receiver.handle((response) => {
      response.writeHead(500);
      const drip = setInterval(() => response.write("."), 20);
      response.on("close", () => clearInterval(drip));
    });
    const notifier = open(receiver.url, 200);

    const silent = await failureOf(notifier.send(messageOf(), sendOptions()));
    const dripping = await failureOf(notifier.send(messageOf(), sendOptions()));

    expect(silent).toMatchObject({ disposition: "retry", code: "ENDPOINT_TIMEOUT" });
    expect(dripping).toMatchObject({ disposition: "retry", code: "ENDPOINT_UNAVAILABLE" });
  });

  test("an endless error body is read no further than needed", async () => {
    let sent = 0;
    const closed = new Promise<void>((resolve) => {
      receiver.handle((response) => {
        response.writeHead(500);
        response.on("close", resolve);
        const pour = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, "a"))) sent += 65_536;
        };
        response.on("drain", pour);
        pour();
      });
    });
    const error = await failureOf(open(receiver.url).send(messageOf(), sendOptions()));
    await closed;

    expect(error).toMatchObject({ code: "ENDPOINT_UNAVAILABLE" });
    expect(sent).toBeLessThan(32 * 1_024 * 1_024);
  });

  test("a caller that stops gets its own reason, before and during the attempt", async () => {
    const reason = new Error("stopping");
    const notifier = open(receiver.url);
    await expect(notifier.send(messageOf(), sendOptions({ signal: AbortSignal.abort(reason) }))).rejects.toBe(
      reason,
    );
    expect(receiver.requests).toHaveLength(0);

    const stopping = new AbortController();
    receiver.handle(() => stopping.abort(reason));
    await expect(notifier.send(messageOf(), sendOptions({ signal: stopping.signal }))).rejects.toBe(reason);
  });

  test("no error shows a piece of the address or of a secret, also when the receiver echoes them (F70)", async () => {
    const notifier = open(receiver.url);
    const echo = `${CANARY} ${SIGNING_SECRET}`;
    const shown: string[] = [inspect(notifier, { depth: 20, showHidden: true }), JSON.stringify(notifier)];
    for (const status of [301, 400, 404, 410, 429, 500, 503]) {
      receiver.reply(status, echo, { location: `/x/${CANARY}`, "x-echo": echo, "retry-after": CANARY });
      shown.push(everythingOf(await failureOf(notifier.send(messageOf(), sendOptions()))));
    }
    receiver.handle((response) => {
      response.socket?.end(`HTTP/1.1 200 OK\r\nbroken header ${echo}\r\n\r\n`);
    });
    const malformed = await failureOf(notifier.send(messageOf(), sendOptions()));
    shown.push(everythingOf(malformed));

    expect(malformed).toMatchObject({ code: "ENDPOINT_UNREACHABLE" });
    expectNoSecret(shown.join("\n"));
  });

  test("the error for an invalid address does not contain its secrets", () => {
    for (const url of [
      "http://[",
      `ftp://x/${CANARY}`,
      `http://user:${CANARY}@example.com/`,
      "http://169.254.169.254/",
    ]) {
      const error = mistakeOf(() => open(url));
      expect(error).toMatchObject({ code: "USAGE" });
      expectNoSecret(everythingOf(error));
    }
  });
});

describe("terminal", () => {
  const broken = Object.assign(new Error(`write EPIPE ${CANARY}`), { code: "EPIPE" });

  test("counts as delivered once the stream took the text, and not before", async () => {
    let taken: (() => void) | undefined;
    const stream = { write: (_text: string, done: () => void) => ((taken = done), true) };
    let isDelivered = false;
    const sent = terminal
      .open({ name: "tty", terminal: stream })
      .send(messageOf(), sendOptions())
      .then((result) => {
        isDelivered = true;
        return result;
      });
    await new Promise(setImmediate);
    expect(isDelivered).toBe(false);
    taken?.();
    expect(await sent).toEqual({ providerReference: null });
  });

  test("a failing stream is retried, and its error contains only the code", async () => {
    const stream = { write: (_text: string, done: (error: Error) => void) => (done(broken), true) };
    const error = await failureOf(
      terminal.open({ name: "tty", terminal: stream }).send(messageOf(), sendOptions()),
    );
    expect(error).toMatchObject({
      disposition: "retry",
      code: "STREAM_FAILED",
      message: "the stream failed (EPIPE)",
    });
    expectNoSecret(everythingOf(error));
  });

  test("a caller that stops gets its own reason although the stream hangs", async () => {
    const stopping = new AbortController();
    const sent = terminal
      .open({ name: "tty", terminal: { write: () => false } })
      .send(messageOf(), sendOptions({ signal: stopping.signal }));
    const reason = new Error("stopping");
    stopping.abort(reason);
    await expect(sent).rejects.toBe(reason);
  });
});
