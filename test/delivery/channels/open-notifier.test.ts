import { inspect } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  CHANNELS,
  type ChannelConfig,
  channelConfig,
  openNotifier,
  type SharedContext,
  secretsOf,
} from "#delivery/receivers/channels/registry.ts";
import { messageOf } from "../support/messages.ts";
import { failureOf, NOW, scriptedLookup, sendOptions } from "../support/receiver.ts";

const shared: SharedContext = {
  terminal: { write: (_text, done) => (done(), true) },
  clock: () => NOW,
  network: {},
};

/** A channel of every kind, as a file would say it; public addresses. */
const EVERY_KIND = Object.fromEntries(CHANNELS.map(({ kind, example }) => [kind, example]));

/** The text of every secret, and of an address what lets anyone post. */
function secretTextsOf(config: ChannelConfig): string[] {
  return secretsOf([config]).flatMap((secret) => {
    const url = URL.parse(secret.reveal());
    return [secret.reveal(), url?.pathname ?? "", url?.search ?? ""].filter((text) => text.length > 1);
  });
}

test.each(Object.entries(EVERY_KIND))("a %s channel opens from its configuration", (kind, fields) => {
  const notifier = openNotifier(channelConfig.parse({ kind, name: "it", ...fields }), shared);
  expect(notifier).toMatchObject({ kind, name: "it" });
});

test.each(Object.entries(EVERY_KIND))(
  "no field of a %s channel shows a secret once read (F70)",
  (kind, fields) => {
    const config = channelConfig.parse({ kind, name: "it", ...fields });
    const shown = `${inspect(config, { depth: 9, showHidden: true })}${JSON.stringify(config)}`;
    const secrets = secretTextsOf(config);
    expect(secrets.length > 0).toBe(kind !== "terminal");
    for (const secret of secrets) expect(shown).not.toContain(secret);
  },
);

test.each(Object.entries(EVERY_KIND))("a %s channel with an unknown field is a mistake", (kind, fields) => {
  const read = channelConfig.safeParse({ kind, name: "it", ...fields, adress: "x" });
  expect(read.error?.issues).toMatchObject([{ code: "unrecognized_keys", keys: ["adress"] }]);
});

test.each(["", "Pager", "a b", "x:y", "-a", "a".repeat(64)])("%j is no name of a channel", (name) => {
  expect(channelConfig.safeParse({ kind: "terminal", name }).success).toBe(false);
});

test("a channel's own opt-in to private networks overrides the common one", () => {
  const open = (own: object, everybody: boolean) => () =>
    openNotifier(channelConfig.parse({ kind: "slack", name: "it", url: "http://10.0.0.7/x", ...own }), {
      ...shared,
      network: { allowPrivateNetworks: everybody },
    });
  expect(open({}, false)).toThrow("is not a public address (private)");
  expect(open({}, true)).not.toThrow();
  expect(open({ allowPrivateNetworks: true }, false)).not.toThrow();
  expect(open({ allowPrivateNetworks: false }, true)).toThrow("is not a public address (private)");
});

const DIALLING = Object.entries(EVERY_KIND).filter(([kind]) => kind !== "terminal");

test.each(DIALLING)(
  "a %s channel dials no name that resolves to a private address (F73)",
  async (kind, fields) => {
    const network = { lookup: scriptedLookup(["10.0.0.7"]) };
    const config = channelConfig.parse({ kind, name: "it", ...fields });
    const error = await failureOf(
      openNotifier(config, { ...shared, network }).send(messageOf(), sendOptions()),
    );
    expect(error).toMatchObject({ code: "ADDRESS_REFUSED", disposition: "retry" });
    for (const secret of secretTextsOf(config)) expect(error.message).not.toContain(secret);
  },
);

test.each(DIALLING)(
  "a %s channel is refused an address of instance metadata, opt-in or not (F73)",
  (kind, fields) => {
    const where = kind === "email" ? { host: "169.254.169.254" } : { url: "http://169.254.169.254/x" };
    const config = channelConfig.parse({ kind, name: "it", ...fields, ...where, allowPrivateNetworks: true });
    expect(() => openNotifier(config, shared)).toThrow("is not a public address (metadata)");
  },
);

test("the kinds are published as a JSON schema in the form a file has them", () => {
  const schema = JSON.stringify(z.toJSONSchema(channelConfig, { io: "input" }));
  for (const kind of Object.keys(EVERY_KIND)) expect(schema).toContain(`"const":"${kind}"`);
});
