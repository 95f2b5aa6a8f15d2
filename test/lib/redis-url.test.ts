import { expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { readRedisUrl } from "#lib/redis-url.ts";

const PLAIN = {
  kind: "server",
  isEncrypted: false,
  username: "",
  password: "",
  name: "",
  db: 0,
  sentinelPassword: null,
};

test.each([
  ["redis://cache", { hosts: [{ host: "cache", port: 6379 }] }],
  [
    "REDISS://u:p%40@[::1]:6380",
    { isEncrypted: true, username: "u", password: "p@", hosts: [{ host: "::1", port: 6380 }] },
  ],
  [
    "redis+sentinel://:p%2C:w@one:1,two/queues/3?sentinel_password=s%26t",
    {
      kind: "sentinel",
      password: "p,:w",
      hosts: [
        { host: "one", port: 1 },
        { host: "two", port: 26_379 },
      ],
      name: "queues",
      db: 3,
      sentinelPassword: "s&t",
    },
  ],
  [
    "rediss+cluster://u:w@[2001:db8::2]:7,n-2.example.com",
    {
      kind: "cluster",
      isEncrypted: true,
      username: "u",
      password: "w",
      hosts: [
        { host: "2001:db8::2", port: 7 },
        { host: "n-2.example.com", port: 6379 },
      ],
    },
  ],
])("%s names these servers", (url, place) => {
  expect(readRedisUrl(url)).toEqual({ ...PLAIN, ...place });
  expect(parseConfig({ REDIS_URL: url }).redisUrl?.reveal()).toBe(url);
});

test.each([
  "http://one",
  "redis://one:1,two:2",
  "redis+sentinel://one:1,two:2",
  "redis+sentinel://one:1,/queues",
  "redis+sentinel://one/queues/x",
  "redis+sentinel://:%zz@one/queues",
  "redis+cluster://one/1",
  "redis+other://one",
])("%s is refused, and the mistake names the three forms", (url) => {
  expect(() => parseConfig({ REDIS_URL: url })).toThrow(
    /^REDIS_URL: \[secret\]: must be a redis:.*redis\+sentinel:.*redis\+cluster:/,
  );
});
