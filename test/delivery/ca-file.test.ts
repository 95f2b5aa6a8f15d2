import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { openNotifier } from "#delivery/receivers/channels/registry.ts";
import { openSink } from "#delivery/receivers/sinks/destination.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { eventsOf, sending } from "./sinks/world.ts";
import { startMailServer } from "./support/mail-server.ts";
import { messageOf } from "./support/messages.ts";
import { ANSWERS, failureOf, PLAIN_ANSWER, sendOptions } from "./support/receiver.ts";
import { createSelfSigned } from "./support/self-signed.ts";

const SECRET = `whsec_${Buffer.alloc(32, "example").toString("base64")}`;
const certificate = createSelfSigned("localhost");
const env = { URL: "", SECRET, TOKEN: "x".repeat(32), BOT: "1:x" };

/** A receiver with a certificate that no public authority has signed. */
async function startHttps(kind: string) {
  const { body } = ANSWERS[kind] ?? PLAIN_ANSWER;
  const server = createServer(certificate, (request, response) => {
    request.resume().on("end", () => response.end(typeof body === "string" ? body : JSON.stringify(body)));
  }).listen(0, "localhost");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `https://localhost:${(server.address() as AddressInfo).port}`;
}

/** Reads a configuration file with this text. */
function configOf(text: string, more: Record<string, string> = {}) {
  const folder = makeTemporaryFolder("ca-file");
  const file = path.join(folder, "longwatch.yaml");
  writeFileSync(path.join(folder, "authority.pem"), certificate.cert);
  writeFileSync(path.join(folder, "other.pem"), "no certificate");
  writeFileSync(file, text);
  return parseConfig({ ...env, ...more, LONGWATCH_CONFIG: file }).alerting;
}

const context = {
  terminal: { write: () => true },
  clock: Date.now,
  network: {},
} as unknown as Parameters<typeof openNotifier>[1];

/** The settings of every kind that posts, besides `ca_file`. */
const CHANNELS: Record<string, string> = {
  webhook: "url_env: URL, secrets_env: [SECRET]",
  slack: "url_env: URL",
  "slack-bot": 'token_env: TOKEN, channel: "#alerts", url: ORIGIN',
  teams: "url_env: URL",
  discord: "url_env: URL",
  pagerduty: "routing_key_env: TOKEN, url: ORIGIN",
  opsgenie: "api_key_env: TOKEN, url: ORIGIN",
  "jira-service-management": "api_key_env: TOKEN, url: ORIGIN",
  alertmanager: "url_env: URL",
  mattermost: `token_env: TOKEN, channel: ${"c".repeat(26)}, url: ORIGIN`,
  "google-chat": "url_env: URL",
  telegram: 'token_env: BOT, chat: "-1001", url: ORIGIN',
  ntfy: "url_env: URL",
  pushover: "token_env: TOKEN, user_env: TOKEN, url: ORIGIN",
};

test.each(Object.entries(CHANNELS))(
  "a %s channel trusts the authority of its ca_file and no other",
  async (kind, settings) => {
    const origin = await startHttps(kind);
    const open = (more: string) => {
      const text = settings.replaceAll("ORIGIN", origin);
      const { channels } = configOf(
        `channels: { hook: { kind: ${kind}, ${text}, allow_private_networks: true${more} } }`,
        { URL: `${origin}/x` },
      );
      const [channel] = channels;
      if (channel === undefined) throw new Error("no channel");
      return openNotifier(channel, context);
    };
    const error = await failureOf(open("").send(messageOf(), sendOptions()));
    expect(error.message).toContain("name the file of its authority in ca_file");
    await expect(open(", ca_file: authority.pem").send(messageOf(), sendOptions())).resolves.toBeDefined();
  },
);

const SINKS: Record<string, string> = {
  splunk: "token_env: TOKEN",
  elastic: "api_key_env: TOKEN",
  otlp: "authorization_env: TOKEN",
  loki: "authorization_env: TOKEN",
};

test.each(Object.entries(SINKS))(
  "a %s destination trusts the authority of its ca_file and no other",
  async (kind, settings) => {
    const origin = await startHttps("alertmanager");
    const open = (more: string) => {
      const { destinations } = configOf(
        `forward: { siem: { kind: ${kind}, url: "${origin}", ${settings}, allow_private_networks: true${more} } }`,
      );
      const [destination] = destinations;
      if (destination === undefined) throw new Error("no destination");
      return openSink(destination, { clock: Date.now });
    };
    const untrusted = await failureOf(open("").send(eventsOf(1), sending()));
    expect(untrusted.message).toContain("name the file of its authority in ca_file");
    // The receiver is reached, and its answer is not of the kind.
    const outcome = await open(", ca_file: authority.pem")
      .send(eventsOf(1), sending())
      .then(String, (thrown: unknown) => String(thrown));
    expect(outcome).not.toContain("CERT");
  },
);

test("a mail channel names ca_file if the server's certificate is refused", async () => {
  const server = await startMailServer({ ...certificate, disabledCommands: ["AUTH"] });
  onTestFinished(() => server.stop());
  const open = (more: string) => {
    const { channels } = configOf(
      `channels: { mail: { kind: email, host: localhost, port: ${server.port}, from: a@b.example, to: [c@d.example], allow_private_networks: true${more} } }`,
    );
    const [channel] = channels;
    if (channel === undefined) throw new Error("no channel");
    return openNotifier(channel, context);
  };
  const error = await failureOf(open("").send(messageOf(), sendOptions()));
  expect(error.message).toContain("ca_file");
  await expect(open(", ca_file: authority.pem").send(messageOf(), sendOptions())).resolves.toBeDefined();
});

test("a ca_file that holds no certificate is refused by name", () => {
  expect(() =>
    configOf("channels: { hook: { kind: slack, url_env: URL, ca_file: other.pem } }", {
      URL: "https://hooks.example/x",
    }),
  ).toThrow('channels.hook.ca_file: "other.pem": must be a file of certificates in PEM');
});
