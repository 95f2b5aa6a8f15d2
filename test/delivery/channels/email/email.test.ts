import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import type { SMTPServerOptions } from "smtp-server";
import { afterEach, describe, expect, test } from "vitest";
import { email, MAX_SUBJECT_CHARS, toEmailMessage } from "#delivery/receivers/channels/email/email.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { headerOf, startMailServer } from "../../support/mail-server.ts";
import { hostileMessage, messageOf, messageSaying } from "../../support/messages.ts";
import { CANARY, failureOf, NOW, scriptedLookup, sendOptions } from "../../support/receiver.ts";
import { createSelfSigned } from "../../support/self-signed.ts";
import { emailMessage } from "./schema.ts";

type EmailOptions = Parameters<typeof email.open>[0];

const render = (message: AlertMessage) => toEmailMessage(message, "longwatch.example");

describeFormat("email", render, emailMessage);

test("a mailbox that is notified late starts the thread, and its later mails are in it", () => {
  const late = render(messageOf({ transition: 2, reason: "first" }));
  expect(late.subject).not.toMatch(/^Re:/);
  expect(render(messageOf({ transition: 3, reason: "worse" })).inReplyTo).toBe(late.messageId);
});

test("a mail with advice starts with the advice and repeats nothing of the first mail", () => {
  const advice = render(messageOf({ reason: "advice", transition: 2 }));
  expect(advice.text).toMatch(/^Advice: /);
  expect(advice.text).not.toMatch(/firing|in 5 minutes|User agent/);
  expect(advice.priority).toBe("normal");
});

/** RFC 5256, section 2.1: what programs compare to thread by subject. */
const baseOf = (subject: string) => subject.replace(/^(?:Re:\s*|\[[^[\]]*\]\s*)*/i, "");

test("every transition is in the thread of the first, with the same base subject and its own id", () => {
  const first = render(messageOf());
  const worse = render(messageOf({ reason: "worse", transition: 2, severity: "error", headline: "other" }));
  const end = render(messageOf({ reason: "resolved", transition: 3, ...ENDED }));

  expect(first).not.toHaveProperty("inReplyTo");
  for (const later of [worse, end]) {
    expect(later).toMatchObject({ inReplyTo: first.messageId, references: first.messageId });
    expect(later.subject).toMatch(/^Re: /);
    expect(baseOf(later.subject)).toBe(baseOf(first.subject));
  }
  expect(new Set([first, worse, end].map(({ messageId }) => messageId)).size).toBe(3);
  expect(render(messageOf({ dedupeKey: "episode-8" })).messageId).not.toBe(first.messageId);
});

test("no mail program finds an address to write to (F71)", () => {
  for (const text of Object.values(HOSTILE)) {
    const { subject, text: plain, html } = render(messageSaying(text));
    expect(`${subject}${plain}${html}`).not.toMatch(/\w@\w/);
  }
});

test("the subject of an alert about Longwatch itself has the headline", () => {
  const self = { kind: "self", zoneId: null, ruleId: null, ruleTitle: null } as const;
  expect(render(messageOf({ ...self, headline: "Channel chat does not deliver" })).subject).toBe(
    "[Longwatch CRITICAL firing] Channel chat does not deliver",
  );
  expect(render(messageOf({ ...self, headline: "" })).subject).toBe("[Longwatch CRITICAL firing] Longwatch");
});

test.each<[string, Partial<AlertMessage>, string]>([
  ["a new alert", {}, "[Longwatch CRITICAL firing]"],
  [
    "a worse one",
    { reason: "worse", severity: "error", transition: 2 },
    "Re: [Longwatch ERROR getting worse]",
  ],
  [
    "a repeat of an acknowledged one",
    { reason: "repeat", state: "acknowledged", transition: 3 },
    "Re: [Longwatch CRITICAL acknowledged, still active]",
  ],
  ["advice", { reason: "advice", transition: 2 }, "Re: [Longwatch CRITICAL firing, advice]"],
  ["a resolve", { reason: "resolved", transition: 3, ...ENDED }, "Re: [Longwatch CRITICAL resolved]"],
])("the subject of %s has its severity and its state", (_what, over, begin) => {
  expect(render(messageOf(over)).subject).toBe(
    `${begin} zone 101 · rule 942100 SQL injection detected via libinjection`,
  );
});

test.each(["x", "💥"])("a subject of %s is cut cleanly at its limit", (unit) => {
  const subjectOf = (size: number) =>
    render(messageOf({ kind: "spike", zoneId: null, ruleId: null, ruleTitle: unit.repeat(size) })).subject;
  const room = MAX_SUBJECT_CHARS - "[Longwatch CRITICAL firing] rule ".length;
  expect(subjectOf(room)).toBe(`[Longwatch CRITICAL firing] rule ${unit.repeat(room)}`);
  expect(subjectOf(room + 1)).toBe(`[Longwatch CRITICAL firing] rule ${unit.repeat(room - 1)}…`);
});

describe("sending", () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  async function start(options: SMTPServerOptions = {}) {
    const server = await startMailServer(options);
    stops.push(server.stop);
    return server;
  }

  const optionsOf = (port: number, over: Partial<EmailOptions> = {}): EmailOptions => ({
    name: "mail",
    host: "127.0.0.1",
    port,
    tls: "none",
    from: "alerts@longwatch.example",
    to: ["on-call@example.com", "second@example.com"],
    clock: () => NOW,
    network: { allowPrivateNetworks: true },
    timeoutMs: 5_000,
    ...over,
  });
  const mailTo = (port: number, over: Partial<EmailOptions> = {}) => email.open(optionsOf(port, over));

  test("a mail arrives at everyone as text and HTML, marked as sent by a program", async () => {
    const server = await start();
    expect(await mailTo(server.port).send(hostileMessage(), sendOptions())).toEqual({
      providerReference: null,
    });

    const [mail] = server.mails;
    expect(mail).toMatchObject({
      from: "alerts@longwatch.example",
      to: ["on-call@example.com", "second@example.com"],
    });
    const raw = mail?.raw ?? "";
    expect(headerOf(raw, "from")).toBe("Longwatch <alerts@longwatch.example>");
    expect(headerOf(raw, "auto-submitted")).toBe("auto-generated");
    expect(headerOf(raw, "date")).toBe("Sat, 21 Nov 2026 14:10:00 +0000");
    expect(headerOf(raw, "content-type")).toMatch(/^multipart\/alternative;/);
    expect(raw).toMatch(/content-type: text\/plain/i);
    expect(raw).toMatch(/content-type: text\/html/i);
    // Hostile text did not become a header, and no line is longer than mail allows.
    expect(headerOf(raw, "severity")).toBeUndefined();
    for (const line of raw.split("\r\n")) expect(line.length).toBeLessThanOrEqual(998);
  });

  test("later mails refer to the first mail", async () => {
    const server = await start();
    const notifier = mailTo(server.port);
    await notifier.send(messageOf(), sendOptions());
    await notifier.send(messageOf({ reason: "resolved", transition: 2, ...ENDED }), sendOptions());
    const [first, second] = server.mails.map(({ raw }) => raw);
    const root = headerOf(first ?? "", "message-id");
    expect(root).toMatch(/^<longwatch\.[0-9a-f]{32}@longwatch\.example>$/);
    expect(headerOf(second ?? "", "references")).toBe(root);
    expect(headerOf(second ?? "", "in-reply-to")).toBe(root);
  });

  test.each([
    [421, "retry", "ENDPOINT_UNAVAILABLE"],
    [451, "retry", "ENDPOINT_UNAVAILABLE"],
    [452, "retry", "ENDPOINT_UNAVAILABLE"],
    [550, "give-up", "ENDPOINT_REJECTED"],
    [554, "give-up", "ENDPOINT_REJECTED"],
  ])("a server's %i is %s and %s, without its words (F62, F70)", async (responseCode, disposition, code) => {
    const refuse = Object.assign(new Error(`no ${CANARY}`), { responseCode });
    const server = await start({ onRcptTo: (_address, _session, callback) => callback(refuse) });
    const error = await failureOf(mailTo(server.port).send(messageOf(), sendOptions()));
    expect(error).toMatchObject({ disposition, code, message: `127.0.0.1 answered ${responseCode}` });
  });

  test.each([
    [450, "put off: it gets the mail again", "failed"],
    [550, "refused for good: the others have it", "delivered"],
  ])("one recipient of two %i, %s", async (responseCode, _what, outcome) => {
    const server = await start({
      onRcptTo({ address }, _session, callback) {
        callback(address.startsWith("second") ? Object.assign(new Error("no"), { responseCode }) : null);
      },
    });
    const sent = mailTo(server.port).send(messageOf(), sendOptions());
    const ended = await sent.then(
      () => "delivered",
      () => "failed",
    );
    expect(ended).toBe(outcome);
    expect(server.mails).toHaveLength(1);
  });

  test("a reply lost after the mail was taken is retried under the same Message-ID (F61)", async () => {
    const raws: string[] = [];
    const server = createServer((socket) => {
      let text = "";
      let isData = false;
      socket.on("error", () => undefined);
      socket.write("220 x\r\n");
      socket.on("data", (chunk) => {
        text += chunk.toString();
        if (isData && text.endsWith("\r\n.\r\n")) {
          raws.push(text);
          socket.destroy();
        } else if (!isData && text.endsWith("\r\n")) {
          isData = text.startsWith("DATA");
          socket.write(isData ? "354 go\r\n" : "250 ok\r\n");
          text = "";
        }
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(() => new Promise((resolve) => server.close(() => resolve())));
    const notifier = mailTo((server.address() as AddressInfo).port);
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const error = await failureOf(notifier.send(messageOf(), sendOptions({ attempt })));
      expect(error).toMatchObject({ disposition: "retry", code: "ENDPOINT_UNREACHABLE" });
    }
    const ids = raws.map((raw) => headerOf(raw, "message-id"));
    expect(ids[0]).toMatch(/^<longwatch/);
    expect(ids[1]).toBe(ids[0]);
  });

  test("silence ends with the deadline, a caller that stops gets its own reason", async () => {
    const accepted: Socket[] = [];
    const server = createServer((socket) => accepted.push(socket.on("error", () => undefined)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;

    const silent = await failureOf(mailTo(port, { timeoutMs: 100 }).send(messageOf(), sendOptions()));
    expect(silent).toMatchObject({ disposition: "retry", code: "ENDPOINT_TIMEOUT" });

    const reason = new Error("stopping");
    const before = mailTo(port).send(messageOf(), sendOptions({ signal: AbortSignal.abort(reason) }));
    await expect(before).rejects.toBe(reason);
    const stopping = new AbortController();
    const connected = once(server, "connection");
    const during = mailTo(port).send(messageOf(), sendOptions({ signal: stopping.signal }));
    during.catch(() => undefined);
    await connected;
    stopping.abort(reason);
    await expect(during).rejects.toBe(reason);

    for (const socket of accepted) socket.destroy();
    server.close();
    await once(server, "close");
    const gone = await failureOf(mailTo(port).send(messageOf(), sendOptions()));
    expect(gone).toMatchObject({ disposition: "retry", code: "ENDPOINT_UNREACHABLE" });
  });

  test("a name that resolves to a private address is refused before anything is said (F73)", async () => {
    let connections = 0;
    const server = await start({ onConnect: (_session, callback) => ((connections += 1), callback()) });
    const network = { lookup: scriptedLookup(["127.0.0.1"]) };
    const notifier = mailTo(server.port, { host: "mail.example", tls: "starttls", network });
    const error = await failureOf(notifier.send(messageOf(), sendOptions()));
    expect(error).toMatchObject({ code: "ADDRESS_REFUSED", disposition: "retry" });
    expect(connections).toBe(0);
  });

  describe("with TLS", () => {
    const { key, cert } = createSelfSigned("mail.example");
    const login = { user: "longwatch", password: createSecret(CANARY) };
    const lookup = scriptedLookup(["127.0.0.1"]);
    const trusted = { allowPrivateNetworks: true, ca: cert, lookup };
    const withLogin: SMTPServerOptions = {
      key,
      cert,
      disabledCommands: [],
      onAuth({ username, password }, _session, callback) {
        if (password === CANARY) callback(null, { user: username });
        else callback(new Error(`wrong ${password}`));
      },
    };
    const secured = { host: "mail.example", login, network: trusted };

    test.each(["starttls", "implicit"] as const)(
      "with %s the login and the mail are sent inside TLS only",
      async (tls) => {
        const server = await start({ ...withLogin, secure: tls === "implicit" });
        await mailTo(server.port, { ...secured, tls }).send(messageOf(), sendOptions());
        expect(server.mails).toMatchObject([{ user: "longwatch", isSecure: true }]);
      },
    );

    test("a server that offers no STARTTLS gets neither password nor mail", async () => {
      const said: string[] = [];
      const server = await start({
        disabledCommands: ["STARTTLS"],
        onAuth: ({ password }, _session, callback) => (
          said.push(password ?? ""), callback(null, { user: "x" })
        ),
      });
      const sent = mailTo(server.port, { ...secured, tls: "starttls" }).send(messageOf(), sendOptions());
      expect((await failureOf(sent)).message).not.toContain(CANARY);
      expect(said).toEqual([]);
      expect(server.mails).toEqual([]);
    });

    test("a server with an untrusted certificate gets no mail", async () => {
      const server = await start(withLogin);
      const network = { allowPrivateNetworks: true, lookup };
      const notifier = mailTo(server.port, { ...secured, tls: "starttls", network });
      expect(await failureOf(notifier.send(messageOf(), sendOptions()))).toMatchObject({
        code: "ENDPOINT_UNREACHABLE",
        disposition: "retry",
      });
      expect(server.mails).toEqual([]);
    });

    test("a login that is refused is given up, and the password shown nowhere (F70)", async () => {
      const server = await start({
        ...withLogin,
        onAuth: ({ password }, _session, callback) => callback(new Error(`wrong ${password}`)),
      });
      const notifier = mailTo(server.port, { ...secured, tls: "starttls" });
      const error = await failureOf(notifier.send(messageOf(), sendOptions()));
      expect(error).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
      const shown = `${inspect(error, { depth: 20, showHidden: true })}${error.stack}${inspect(notifier, { depth: 20, showHidden: true })}`;
      expect(shown).not.toContain(CANARY);
      expect(shown).not.toContain(Buffer.from(CANARY).toString("base64"));
    });
  });

  test("every mistake is listed at once, without the password", () => {
    const open = () =>
      email.open({
        ...optionsOf(25, { login: { user: "u", password: createSecret(CANARY) } }),
        network: {},
        from: "Longwatch <a@b>",
        to: [],
      });
    expect(open).toThrow(
      expect.objectContaining({
        code: "USAGE",
        mistakes: [
          'channel mail: "Longwatch <a@b>" is not a bare address',
          "channel mail: host: 127.0.0.1 is not a public address (loopback)",
          "channel mail: to: must have at least one address",
          "channel mail: tls: none is allowed only if private addresses are allowed (allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS)",
        ],
      }),
    );
    expect(open).not.toThrow(CANARY);
  });

  test.each(["a@b\r\nbcc: c@d", "a@b, c@d", "<a@b>", "a b@c", "a@", "a@b>c"])(
    "%j is no address",
    (address) => {
      expect(() => mailTo(25, { to: [address] })).toThrow("is not a bare address");
    },
  );
});
