import { expect, test } from "vitest";
import { createBatch } from "#store/queue/enqueuer.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("items of one turn are one batch and share its outcome; items of the next turn are another", async () => {
  const batches: number[][] = [];
  const add = createBatch(async (items: number[]) => {
    batches.push(items);
    return items.length;
  });
  expect(await Promise.all([add(1), add(2), Promise.resolve().then(() => add(3))])).toEqual([3, 3, 3]);
  expect(await add(4)).toBe(1);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test("a batch that fails, or never ends, holds up no other", async () => {
  let asked = 0;
  const add = createBatch((items: string[]) => {
    asked += 1;
    if (items.includes("hang")) return new Promise<never>(() => undefined);
    return items.includes("bad") ? Promise.reject(new Error("no store")) : Promise.resolve(items.length);
  });
  const failed = [add("bad"), add("good")];
  await expect(failed[0]).rejects.toThrow("no store");
  await expect(failed[1]).rejects.toThrow("no store");
  void add("hang");
  await turn();
  expect(await add("good")).toBe(1);
  expect(asked).toBe(3);
});
