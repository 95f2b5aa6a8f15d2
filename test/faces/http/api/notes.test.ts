import { expect, test } from "vitest";
import { auditEntries } from "#db/schema/people.ts";
import { NOW } from "#test/alerts/support.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const PATH = "/api/v1/notes";

interface Item {
  readonly id: number;
  readonly at: string;
  readonly text: string;
}

async function open() {
  await world.database().pool.query("delete from notes");
  const { url } = await world.start({ clock: () => NOW });
  const post = (key: string, body: object, status = 201, path = PATH) =>
    ask<Item>(url, path, key, { method: "POST", body: JSON.stringify(body), status });
  const list = async (key: string, query = "") =>
    (await ask<{ items: Item[] }>(url, `${PATH}${query}`, key)).items;
  return { url, post, list };
}

test("a note is added, listed within the zones of a key, and deleted, with audit entries that hide the address", async () => {
  const { url, post, list } = await open();
  const everywhere = await world.key("operator", { name: "ann" });
  const own = await world.key("operator", { zoneIds: [101] });
  const ours = await post(own, { text: "deploy 1.4.2", zone: 101, at: "2026-11-20T10:00:00Z" });
  const all = await post(everywhere, { text: "block 198.51.100.7 <b>" });
  const foreign = await post(everywhere, { text: "deploy of the other", zone: 102 });
  expect(all).toMatchObject({ zone: null, at: new Date(NOW).toISOString(), createdBy: "ann", link: null });
  const ids = async (key: string, query?: string) => (await list(key, query)).map(({ id }) => id);
  expect(await ids(everywhere)).toEqual([foreign.id, all.id, ours.id]);
  expect(await ids(own)).toEqual([all.id, ours.id]);
  expect(await ids(everywhere, "?zone=101&since=2026-11-20T10:00:00Z&until=2026-11-20T10:00:01Z")).toEqual([
    ours.id,
  ]);
  expect((await list(await world.key("reader", { isMasked: true })))[1]?.text).not.toContain("198.51.100.7");
  const first = await ask<{ items: Item[]; next: string }>(url, `${PATH}?limit=2`, everywhere);
  expect(await ids(everywhere, `?limit=2&after=${encodeURIComponent(first.next)}`)).toEqual([ours.id]);

  await post(own, { text: "of all zones" }, 403);
  await post(own, { text: "of others", zone: 102 }, 403);
  await post(await world.key("reader"), { text: "no right", zone: 101 }, 403);
  await post(everywhere, { text: "two\nlines" }, 400);
  await post(everywhere, { text: "a script", link: "javascript:alert(1)" }, 400);
  await post(everywhere, { text: "next year", at: NOW + 8 * 86_400_000 + "" }, 422);
  const remove = (key: string, id: number, status = 200) =>
    ask(url, `${PATH}/${id}`, key, { method: "DELETE", status });
  await remove(own, all.id, 404);
  await remove(own, foreign.id, 404);
  expect(await remove(own, ours.id)).toEqual({ id: ours.id, result: "deleted" });
  const audit = await world.database().db.select().from(auditEntries);
  const actions = (id: number) =>
    audit.filter(({ subject }) => subject === `note ${id}`).map(({ action }) => action);
  expect(actions(ours.id)).toEqual(["note.added", "note.deleted"]);
  expect(JSON.stringify(audit)).not.toContain("198.51.100.7");
});

const HUB = {
  action: "created",
  deployment_status: {
    id: 9,
    state: "success",
    target_url: "https://github.com/acme/shop/actions/runs/1",
    created_at: "2026-11-20T13:59:00Z",
  },
  deployment: {
    id: 77,
    ref: "v1.4.2",
    sha: "9049f1265b7d61be4a8904a9a27120d2064dab3b",
    environment: "production",
  },
  repository: { full_name: "acme/shop", private: true },
  sender: { login: "octocat" },
};
const LAB = {
  object_kind: "deployment",
  status: "success",
  status_changed_at: "2026-11-20 15:58:00 +0200",
  deployment_id: 15,
  deployable_url: "https://gitlab.example/acme/shop/-/jobs/796",
  environment: "production",
  project: { id: 30, path_with_namespace: "acme/shop" },
  ref: "main",
  short_sha: "279484c0",
  user: { name: "Ann" },
};

test("a deployment that GitHub or GitLab sends is noted once, and whatever else they send is accepted", async () => {
  const { url, list } = await open();
  const key = await world.key("operator", { zoneIds: [101] });
  const basic = `Basic ${Buffer.from(`hook:${key}`).toString("base64")}`;
  const send = async (body: object, query = "?zone=101") => {
    const answer = await fetch(`${url}${PATH}/deployments${query}`, {
      method: "POST",
      headers: { authorization: basic, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as { noted: Item | null } };
  };
  const results = await Promise.all([send(HUB), send(HUB), send(LAB), send(LAB)]);
  expect(results.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  for (const body of [
    { ...HUB, deployment_status: { ...HUB.deployment_status, state: "failure" } },
    { ...LAB, status: "running" },
    { zen: "Keep it logically awesome.", hook_id: 1 },
    {},
  ])
    expect(await send(body)).toMatchObject({ status: 200, body: { noted: null } });
  expect((await send(HUB, "?zone=102")).status).toBe(403);
  expect((await send(HUB, "")).status).toBe(403);
  expect((await list(key)).map(({ at, text }) => [at, text])).toEqual([
    ["2026-11-20T13:59:00.000Z", "deploy v1.4.2 (9049f126) of acme/shop, production"],
    ["2026-11-20T13:58:00.000Z", "deploy main (279484c0) of acme/shop, production"],
  ]);
});
