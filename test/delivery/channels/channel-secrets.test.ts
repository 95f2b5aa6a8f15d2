import { expect, test } from "vitest";
import { channelConfig, secretsOf } from "#delivery/receivers/channels/registry.ts";

test("every credential of a channel is found, also in lists and nested settings", () => {
  const channels = [
    {
      kind: "email",
      name: "mail",
      host: "mail.example",
      from: "a@b.c",
      to: ["d@e.f"],
      login: { user: "u", password: "one" },
    },
    { kind: "webhook", name: "hook", url: "two", secrets: ["three", "four"] },
    { kind: "slack-bot", name: "bot", token: "five", channel: "#alerts" },
    { kind: "terminal", name: "tty" },
  ].map((channel) => channelConfig.parse(channel));
  expect(secretsOf(channels).map((secret) => secret.reveal())).toEqual([
    "one",
    "two",
    "three",
    "four",
    "five",
  ]);
});
