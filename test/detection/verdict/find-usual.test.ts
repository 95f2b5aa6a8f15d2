import { expect, test } from "vitest";
import { findUsual } from "#detection/rules/verdict/evidence.ts";
import type { FirstUse } from "#model/stored-sources.ts";

async function* inDays(...days: readonly FirstUse[][]) {
  yield* days;
}
const use = (value: string, user: string, at: number) => ({ dimension: "path" as const, value, user, at });

test("pages whose names differ are usual as one template, beside those that three addresses used themselves", async () => {
  const names = Array.from({ length: 14 }, (_, i) => use(`/blog/a-post-${i}x`, `ip${i % 5}`, i));
  const found = await findUsual(
    inDays(names, [use("/blog/a-post-0x", "ip1", 20), use("/blog/a-post-0x", "ip2", 30)]),
  );
  expect(found).toEqual([
    { dimension: "path", value: "/blog/{slug}", since: 2 },
    { dimension: "path", value: "/blog/a-post-0x", since: 30 },
  ]);
});

test("a flood of different values neither grows without end nor replaces older ones", async () => {
  const old = ["a", "b", "c"].map((ip) => use("/old", ip, 1));
  const flood = Array.from({ length: 60_000 }, (_, i) => use(`/x${i}`, "d", 2 + i));
  const more = flood.flatMap(({ value, at }) => [use(value, "e", at), use(value, "f", at)]);
  const found = await findUsual(inDays(old, flood, more));
  expect(found).toHaveLength(5_000);
  expect(found[0]).toEqual({ dimension: "path", value: "/old", since: 1 });
});
