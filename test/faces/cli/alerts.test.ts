import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { NOT_SHOWN } from "#db/delivery/drop-notifications.ts";
import { alerts, silences } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { at } from "../../alerts/alert-world.ts";
import { NOW } from "../../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { openAlertRows } from "./alert-rows.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";
import { runStoreCommand } from "./run-store-command.ts";

const alertsCommand = await loadSubject("alerts");

let database: MigratedDatabase;
let rows: ReturnType<typeof openAlertRows>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  rows = openAlertRows(database);
});

afterAll(() => database.drop());

beforeEach(async () => {
  await rows.clear();
  await clearAudit(database);
});

const testWays = testBothWays(alertsCommand, () => ({ database, now: NOW + MINUTE_MS }));

testWays(
  "a list holds the unresolved alerts, the worst first, one line each and harmless to a terminal",
  async ({ run }) => {
    const first = await rows.fire();
    const second = await rows.fire({ ruleId: "942\u001b[2J\u202e", zoneId: 102, severity: "critical" });
    const { code, out, err } = await run("list");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^ALERT +SEVERITY +STATE +AGE +SINCE \(UTC\) +HEADLINE$/);
    expect(lines[1]).toMatch(
      new RegExp(`^#${second} +critical +firing +\\d+ (?:s|min) +2026-11-20 15:30 .*zone 102`),
    );
    expect(lines[2]).toMatch(new RegExp(`^#${first} +warning +firing +\\d+ (?:s|min) +2026-11-20 15:30 `));
    expect(lines[2]).toContain(
      "   SQL injection: rule 942100 in zone 101 is spiking, 50 events in 3 min, 25 times the usual 2",
    );
    expect(lines).toHaveLength(4);
    for (const hidden of ["\u001b", "\u202e"]) expect(out).not.toContain(hidden);
  },
);

testWays.both(
  "a list is narrowed by state, zone, rule family and time, and says when there are more",
  async ({ run, by }) => {
    const sql = await rows.fire({ ruleId: "942100" });
    const other = await rows.fire({ ruleId: "931130", zoneId: 102 });
    await run("resolve", String(other), ...by("alice"));
    const ids = async (...args: string[]) => {
      const { out } = await run("list", "--json", ...args);
      return (JSON.parse(out) as { items: { id: number }[] }).items.map(({ id }) => id);
    };
    expect(await ids()).toEqual([sql]);
    expect(await ids("--state", "all")).toEqual([sql, other]);
    expect(await ids("--state", "all", "--sort", "newest")).toEqual([other, sql]);
    expect(await ids("--state", "resolved", "--state", "firing")).toEqual([sql, other]);
    expect(await ids("--state", "all", "--zone", "102")).toEqual([other]);
    expect(await ids("--state", "all", "--rule", "942*")).toEqual([sql]);
    expect(await ids("--state", "all", "--rule", "942")).toEqual([]);
    expect(await ids("--state", "all", "--since", "-1h")).toEqual([sql, other]);
    expect(await ids("--state", "all", "--since", "now")).toEqual([]);
    expect(await ids("--state", "all", "--from", "now")).toEqual([]);
    const { out } = await run("list", "--state", "all", "--limit", "1");
    const [, after = ""] = /There are more: --after (\S+) shows the next page/.exec(out) ?? [];
    expect(await ids("--state", "all", "--limit", "1", "--after", after)).toEqual([other]);
    expect((await run("list", "--after", String(sql))).err).toContain("the `next` of the previous page");
    expect(await ids("--state", "all", "--severity", "critical,error")).toEqual([]);
    expect(await ids("--state", "all", "--kind", "self")).toEqual([]);
    expect(await ids("--state", "all", "--kind", "spike", "--until", "now")).toEqual([sql, other]);
    await database.db.update(alerts).set({ kind: "sources" }).where(eq(alerts.id, sql));
    expect(await ids("--kind", "sources")).toEqual([sql]);
  },
);

testWays(
  "an alert is shown with its message, history, deliveries and the whole advice",
  async ({ run, by }) => {
    const id = await rows.fire();
    const advice = Array.from({ length: 30 }, (_, line) => `advice line ${line} \u001b]0;x\u0007`).join("\n");
    const [alert] = await rows.alerts();
    const { message } = (alert?.details ?? {}) as { message?: object };
    const details = { message: { ...message, advice: { state: "present", text: advice, reason: null } } };
    await database.db.update(alerts).set({ details }).where(eq(alerts.id, id));
    await database.db
      .update(notifications)
      .set({ state: "delivered", deliveredAt: at(1), attempts: 2 })
      .where(eq(notifications.channel, "chat"));
    await database.db
      .update(notifications)
      .set({ attempts: 1, lastError: "ENDPOINT_REJECTED: \u001b[31mno" })
      .where(eq(notifications.channel, "pager"));
    await run("ack", String(id), ...by("alice"), "--note", "on it");

    const { code, out } = await run("show", `#${id}`);

    expect(code).toBe(0);
    for (const said of [
      `alert #${id}   acknowledged`,
      " WARNING  acknowledged · zone 101 · rule 942100 SQL injection",
      "203.0.113.7",
      "\nSilence:\nnpm run -s longwatch -- silences add --zone 101 --ip=203.0.113.7 --for 2h --reason 'why'\n",
      "About rule 942100 in all of zone 101:",
      "advice line 29",
      "1  2026-11-20 15:30 UTC  first         warning  to chat, pager",
      'acknowledged  by alice  "on it"',
      "chat          1 first     delivered 2026-11-20 15:31 UTC, 2 attempts",
      "1 attempt  ENDPOINT_REJECTED: \\u{1b}[31mno",
    ])
      expect(out).toContain(said);
    expect(out).not.toContain("\u001b");
    const json = JSON.parse((await run("show", String(id), "--json")).out);
    expect(json).toMatchObject({
      id,
      state: "acknowledged",
      acknowledgedBy: "alice",
      deliveries: [{}, {}, {}, {}],
    });
  },
);

testWays(
  "an alert that no channel is notified of says why, in the list and when it is shown",
  async ({ run }) => {
    const id = await rows.fire({ addresses: 2, mainSenders: 1 });
    expect((await run("list")).out).toMatch(new RegExp(`^#${id} +warning +firing, only listed `, "m"));
    const { out } = await run("show", String(id));
    const why = "only listed: few addresses send most of its events";
    expect(out.split("\n")[0]).toBe(`alert #${id}   firing, ${why}`);
    expect(out).toMatch(new RegExp(`^ +1 .* first .* ${why}$`, "m"));
  },
);

testWays("a message that a channel need not be sent is not shown as one that was lost", async ({ run }) => {
  const id = await rows.fire();
  await database.db
    .update(notifications)
    .set({ state: "undeliverable", lastError: NOT_SHOWN })
    .where(eq(notifications.channel, "chat"));
  await database.db
    .update(notifications)
    .set({ state: "undeliverable", attempts: 3, lastError: "ENDPOINT_REJECTED: no" })
    .where(eq(notifications.channel, "pager"));
  const { out } = await run("show", String(id));
  expect(out).toMatch(new RegExp(`chat .* not needed  ${NOT_SHOWN}\n`));
  expect(out).toMatch(/pager .* given up, 3 attempts {2}ENDPOINT_REJECTED/);
});

testWays(
  "the only critical alert is first, however many others are newer, and pages lose none",
  async ({ run }) => {
    const critical = await rows.fire({ severity: "critical", ruleId: "941100" });
    const acked = await rows.fire({ severity: "critical", ruleId: "941101" });
    await run("ack", String(acked));
    const warnings: number[] = [];
    for (let n = 0; n < 4; n++) warnings.unshift(await rows.fire({ ruleId: `94211${n}` }));
    const read = async (after: string | null, found: number[] = []): Promise<number[]> => {
      const args = ["list", "--json", "--limit", "2", ...(after === null ? [] : ["--after", after])];
      const page = JSON.parse((await run(...args)).out) as { items: { id: number }[]; next: string | null };
      const ids = [...found, ...page.items.map(({ id }) => id)];
      return page.next === null ? ids : read(page.next, ids);
    };
    expect(await read(null)).toEqual([critical, ...warnings, acked]);
  },
);

testWays(
  "a muted alert is marked in the list, and its history says when, by whom and why",
  async ({ run }) => {
    const id = await rows.fire();
    await rows.silence({ rule: ["942100"] }, 120);
    await rows.silence({ rule: ["1"] }, 600);
    const [made] = await database.db.select().from(silences).orderBy(silences.id);
    await database.db.update(silences).set({ createdAt: at(0.5) });
    expect((await run("list")).out).toMatch(
      new RegExp(`#${id} +warning +firing, silenced until 2026-11-20 17:30 `),
    );
    expect((await run("show", String(id))).out).toContain(
      `Silenced\n  2026-11-20 15:30:30 to 2026-11-20 17:30 UTC, in force now  by silence #${made?.id} of test  "test"\n`,
    );
    const { silence, silenced } = JSON.parse((await run("show", String(id), "--json")).out);
    expect(silence).toMatchObject({ id: made?.id, createdBy: "test", reason: "test" });
    expect(silenced).toMatchObject([{ id: made?.id, from: "2026-11-20T15:30:30.000Z", to: null }]);
  },
);

testWays.both(
  "several alerts are acknowledged or resolved at once, by number or by filter, each with its audit entry",
  async ({ run, by }) => {
    const ids = [await rows.fire(), await rows.fire({ ruleId: "931130" }), await rows.fire({ zoneId: 102 })];
    const [one, two, three] = ids;
    const acked = await run("ack", `${one},#${two}`, "999999", ...by("alice"));
    expect(acked).toMatchObject({ code: 1, err: "" });
    expect(acked.out).toBe(
      `alert #${one} is acknowledged by alice.\nalert #${two} is acknowledged by alice.\nThere is no alert 999999, or this key may not see it.\n`,
    );
    const resolved = await run("resolve", "--rule", "94*", ...by("bob"), "--json");
    expect(JSON.parse(resolved.out)).toMatchObject({
      items: [
        { id: three, state: "resolved", result: "done" },
        { id: one, state: "resolved", result: "done" },
      ],
    });
    const said = (await rows.audit()).map(({ actor, action, subject }) => [
      /alice|bob/.exec(actor)?.[0],
      action,
      subject,
    ]);
    expect(said).toEqual([
      ["alice", "alert.acknowledged", `alert ${one}`],
      ["alice", "alert.acknowledged", `alert ${two}`],
      ["bob", "alert.resolved", `alert ${three}`],
      ["bob", "alert.resolved", `alert ${one}`],
    ]);
    expect((await run("ack", "--severity", "info")).out).toBe("No alert matches; nothing was changed.\n");
    expect((await run("ack", String(two), "--rule", "94*")).err).toContain(
      "without options that select alerts",
    );
    expect((await run("ack")).err).toContain("<ids> is missing");
  },
);

testWays(
  "an acknowledged alert is not repeated, still gets worse, and both are on record",
  async ({ run, by }) => {
    const id = await rows.fire();
    expect((await run("ack", String(id), ...by("alice"), "--note", "mine")).out).toBe(
      `alert #${id} is acknowledged by alice.\n`,
    );
    await rows.runAt(5 * 60);
    const told = ["1 first chat", "1 first pager", "2 acknowledged chat", "2 acknowledged pager"];
    expect(await rows.outbox()).toEqual(told);
    await database.pool.query("update spikes set severity = 'critical'");
    await rows.runAt(5 * 60 + 1);
    expect(await rows.outbox()).toEqual([...told, "3 worse chat", "3 worse pager"]);
    const [alert] = await rows.alerts();
    expect(alert).toMatchObject({ state: "acknowledged", acknowledgedBy: "alice", transition: 3 });
    expect(alert?.transitions).toMatchObject([
      { reason: "first" },
      { reason: "acknowledged", by: "alice", note: "mine", channels: [] },
      { reason: "worse" },
    ]);
    expect(await rows.audit()).toEqual([
      {
        actor: expect.stringContaining("alice"),
        action: "alert.acknowledged",
        subject: `alert ${id}`,
        details: { from: "firing", channels: ["chat", "pager"], note: "mine" },
      },
    ]);
  },
);

testWays(
  "the note of a second acknowledgement is stored, sent and audited, and the same note again adds nothing",
  async ({ run, by }) => {
    const id = String(await rows.fire());
    await run("ack", id, ...by("alice"));
    expect((await run("ack", id, ...by("bob"))).out).toContain("; nothing was changed");
    const noted = await run("ack", id, ...by("bob"), "--note", "network blocked");
    expect(noted).toMatchObject({
      code: 0,
      out: `alert #${id} is already acknowledged by alice; the note of bob was added.\n`,
    });
    expect((await run("ack", id, ...by("bob"), "--note", "network blocked")).out).toContain(
      "nothing was changed",
    );
    const [alert] = await rows.alerts();
    expect(alert).toMatchObject({ state: "acknowledged", acknowledgedBy: "alice", transition: 3 });
    expect(alert?.transitions).toMatchObject([
      { reason: "first" },
      { reason: "acknowledged", by: "alice" },
      { reason: "acknowledged", by: "bob", note: "network blocked" },
    ]);
    expect((await rows.outbox()).slice(-2)).toEqual(["3 acknowledged chat", "3 acknowledged pager"]);
    expect((await rows.messages()).at(-1)?.message.headline).toMatch(
      /^Acknowledged by alice, note by bob \(network blocked\): /,
    );
    expect((await run("show", id)).out).toContain('acknowledged  by bob  "network blocked"');
    expect((await rows.audit()).map(({ actor, details }) => ({ actor, details }))).toMatchObject([
      { actor: expect.stringContaining("alice"), details: { from: "firing" } },
      { actor: expect.stringContaining("bob"), details: { from: "acknowledged", note: "network blocked" } },
    ]);
  },
);

testWays("of two concurrent acknowledgements one counts, and the other reports it", async ({ run, by }) => {
  const id = await rows.fire();
  const ran = await Promise.all(["alice", "bob"].map((who) => run("ack", String(id), ...by(who))));
  expect(ran.map(({ code }) => code)).toEqual([0, 0]);
  expect(ran.filter(({ out }) => out.includes("; nothing was changed"))).toHaveLength(1);
  expect(await rows.audit()).toHaveLength(1);
  expect((await rows.alerts())[0]?.transition).toBe(2);
});

testWays(
  "a resolve notifies every notified channel once, and prevents the spike, but no later one, from being raised again",
  async ({ run, by }) => {
    const id = await rows.fire();
    const ran = await Promise.all([
      run("resolve", String(id), ...by("alice")),
      run("resolve", String(id), ...by("bob")),
      rows.runAt(1),
    ]);
    await rows.runAt(2);
    expect(ran[0].code + ran[1].code).toBe(0);
    expect(
      ran.slice(0, 2).filter((one) => one?.out.includes("channels to be notified: chat, pager")),
    ).toHaveLength(1);
    expect(await rows.outbox()).toEqual([
      "1 first chat",
      "1 first pager",
      "2 resolved chat",
      "2 resolved pager",
    ]);
    const messages = await rows.messages();
    const [first, , resolved] = messages.map(({ message }) => message);
    expect(resolved).toMatchObject({ state: "resolved", transition: 2, dedupeKey: first?.dedupeKey });
    expect(resolved?.headline).toMatch(/^Resolved by (alice|bob): SQL injection: rule 942100 in zone 101/);
    expect(new Set(messages.map(({ dedupeKey }) => dedupeKey)).size).toBe(4);
    expect(await rows.audit()).toMatchObject([
      { action: "alert.resolved", details: { from: "firing", channels: ["chat", "pager"] } },
    ]);

    await rows.closeSpike((await rows.alerts())[0]?.spikeId ?? 0, 3);
    await rows.runAt(4);
    expect(await rows.outbox()).toHaveLength(4);
    await rows.openSpike(10);
    await rows.runAt(10);
    expect((await rows.outbox()).slice(4)).toEqual(["3 again chat", "3 again pager"]);
  },
);

testWays("a resolve concurrent with a `worse` leaves the outbox in order", async ({ run, by }) => {
  for (let round = 0; round < 3; round++) {
    await rows.clear();
    const id = await rows.fire();
    await database.pool.query("update spikes set severity = 'critical'");
    await Promise.all([rows.runAt(1), run("resolve", String(id), ...by("alice"))]);
    await rows.runAt(2);
    const [alert] = await rows.alerts();
    expect(alert?.state).toBe("resolved");
    const reasons = (await rows.outbox()).filter((row) => row.endsWith("chat"));
    expect(reasons.at(-1)).toBe(`${alert?.transition} resolved chat`);
    expect(reasons.filter((row) => row.includes("resolved"))).toHaveLength(1);
  }
});

testWays("channels that were not notified of the firing get no resolve", async ({ run, by }) => {
  await rows.silence({ zone: [101] }, 60);
  const id = await rows.fire();
  expect((await run("resolve", String(id), ...by("alice"))).out).toContain(
    "no channel had been notified of the alert",
  );
  expect(await rows.outbox()).toEqual([]);
});

testWays.both(
  "a mark as attack or noise is stored with the actor, and the latest mark counts",
  async ({ run, by }) => {
    const id = String(await rows.fire());
    const readMark = async () => (await rows.spikes()).map(({ mark }) => mark);
    expect((await run("show", id)).out).toContain("Feedback\n  not marked\n");
    const marked = await run("mark", id, "--as", "attack", ...by("alice"), "--note", "from one network");
    expect(marked).toMatchObject({
      code: 0,
      out: `alert #${id}: 1 spike marked as attack by alice; its hours leave the rule's history.\n`,
    });
    expect(await readMark()).toEqual(["attack"]);
    expect((await run("mark", id, "--as", "attack")).out).toContain("is already marked as attack");
    expect((await run("mark", id, "--as", "noise", ...by("bob"))).out).toContain(
      "noise instead of attack by bob",
    );
    const shown = await run("show", id, "--json");
    expect(JSON.parse(shown.out)).toMatchObject({
      mark: "noise",
      markedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    const [spike] = await rows.spikes();
    expect(await rows.audit()).toEqual([
      {
        actor: expect.stringContaining("alice"),
        action: "alert.marked",
        subject: `alert ${id}`,
        details: { mark: "attack", before: null, spikeIds: [spike?.id], note: "from one network" },
      },
      {
        actor: expect.stringContaining("bob"),
        action: "alert.marked",
        subject: `alert ${id}`,
        details: { mark: "noise", before: "attack", spikeIds: [spike?.id] },
      },
    ]);
  },
);

testWays("a resolve can say what it was, also of an alert that is resolved already", async ({ run, by }) => {
  const id = String(await rows.fire());
  const { code, out } = await run("resolve", id, "--as", "noise", ...by("alice"));
  expect(code).toBe(0);
  expect(out).toContain(`alert #${id} is resolved by alice`);
  expect(out).toContain("marked as noise by alice");
  expect((await run("resolve", id, "--as", "attack")).out).toContain("marked as attack instead of noise");
  expect((await rows.audit()).map(({ action }) => action)).toEqual([
    "alert.marked",
    "alert.resolved",
    "alert.marked",
  ]);
});

testWays("marks given at the same time are stored one after the other", async ({ run, by }) => {
  const id = String(await rows.fire());
  await Promise.all(["attack", "noise", "attack"].map((as) => run("mark", id, "--as", as, ...by(as))));
  const [spike] = await rows.spikes();
  const said = (await rows.audit()).map(({ details }) => details as { mark: string; before: string | null });
  expect(said.at(-1)?.mark).toBe(spike?.mark);
  for (const [i, { before }] of said.entries()) expect(before).toBe(said[i - 1]?.mark ?? null);
});

testWays(
  "every spike of an alert that was reopened is marked, one from before it is not",
  async ({ run }) => {
    const earlier = await rows.openSpike(-300);
    await rows.closeSpike(earlier, -200);
    const id = String(await rows.fire());
    const [first] = (await rows.alerts()).map(({ spikeId }) => spikeId);
    await rows.closeSpike(first ?? 0, 10);
    await rows.runAt(10);
    const second = await rows.openSpike(15);
    await rows.runAt(15);
    expect((await rows.alerts()).map(({ spikeId }) => spikeId)).toEqual([second]);
    await run("mark", id, "--as", "attack");
    const marks = new Map((await rows.spikes()).map((spike) => [spike.id, spike.mark]));
    expect([earlier, first ?? 0, second].map((spike) => marks.get(spike))).toEqual([
      null,
      "attack",
      "attack",
    ]);
  },
);

testWays(
  "a rule that is noise time and again comes with the lines that would keep it quiet",
  async ({ run }) => {
    const id = String(await rows.fire());
    await run("mark", id, "--as", "noise");
    expect((await run("show", id)).out).not.toContain("overrides");
    await database.pool.query(
      `insert into spikes (opened_at, closed_at, last_active_at, judged_through, baseline, threshold, score, peak, window_count,
       window_minutes, zone_id, rule_id, severity, kind, evidence, mark, marked_at)
     select opened_at - n * interval '1 day', opened_at - n * interval '23 hours', opened_at - n * interval '1 day',
       judged_through, baseline, threshold, 5.2, peak, window_count, window_minutes, zone_id, rule_id, severity, kind,
       evidence, 'noise', marked_at from spikes, generate_series(1, 2) as n`,
    );
    const { out } = await run("show", id);
    expect(out).toContain("With z 5.5 instead of 3.5, 3 of these spikes would not have opened");
    expect(out).toContain(
      'overrides:\n        - zone: [101]\n          rule: ["942100"]\n          z: 5.5\n',
    );
  },
);

testWays("every mistake is reported at once and nothing is changed", async ({ run }) => {
  const list = await run("list", "--state", "open", "--zone", "x", "--since", "soon", "--limit", "0", "more");
  expect(list.code).toBe(2);
  expect(list.err).toContain("longwatch alerts list: 5 mistakes");
  const ack = await run("ack", "x\u001b[2J", "--by", "", "--note", "a\nb", "--force");
  expect(ack.code).toBe(2);
  expect(ack.err).not.toContain("\u001b");
  for (const said of ['"x\\u001b[2J" must be the number of an alert', "--by", "--note", '"--force" is not'])
    expect(ack.err).toContain(said);
  expect((await run("mark", "1")).err).toContain("--as is missing: must be one of attack, misfire, ");
  expect((await run("mark", "1", "--as", "Noise")).err).toContain(
    '--as "Noise" must be one of attack, misfire, ',
  );
  expect((await run("resolve", "1", "--as", "x")).err).toContain('--as "x" must be one of attack, misfire, ');
  expect((await run("resolve")).err).toContain("<ids> is missing");
});

testWays.both("an alert that is not there is an error, not a mistake in typing", async ({ run }) => {
  const said = "There is no alert 4711, or this key may not see it.\n";
  for (const command of ["show", "mark"])
    expect(await run(command, "4711", ...(command === "mark" ? ["--as", "noise"] : []))).toMatchObject({
      code: 1,
      err: `longwatch alerts ${command}: ${said}`,
    });
  for (const command of ["ack", "resolve"])
    expect(await run(command, "4711")).toMatchObject({ code: 1, out: said });
});

test.each(["list", "show", "ack", "resolve", "mark"])("%s explains itself with examples", async (name) => {
  const { code, out } = await runStoreCommand(alertsCommand, {}, [name, "--help"], { now: NOW });
  expect(code).toBe(0);
  expect(out).toContain(`Examples:\n  npm run -s longwatch -- alerts ${name}`);
});

testWays("a mark is of the alert's own rule, zone and time, and of no other spike", async ({ run }) => {
  await rows.openSpike(-60, { closedAt: at(-30) });
  const id = String(await rows.fire());
  await rows.openSpike(0, { zoneId: 102 });
  await rows.openSpike(0, { ruleId: "941100" });
  expect((await run("mark", id, "--as", "attack")).out).toContain("1 spike marked as attack");
  expect((await rows.spikes()).map(({ mark }) => mark)).toEqual([null, "attack", null, null]);
});
