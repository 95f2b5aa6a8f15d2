import { describe, expect, test } from "vitest";
import {
  outlineMembers,
  partMembers,
  showsMembers,
  toMembersFile,
} from "#delivery/rules/message/group-members.ts";
import { stringsOf } from "../support/characters.ts";
import { countNamed, FORMS } from "../support/forms.ts";
import { HOSTILE } from "../support/hostile.ts";
import { incidentWith } from "../support/messages.ts";
import { NOW } from "../support/receiver.ts";

const RULES = 5_000;
/** With long names, more text than any channel takes in all its messages. */
const MANY_RULES = 1_200;
const HOSTILE_IDS = Object.values(HOSTILE);

const shown = (bodies: readonly unknown[]) => bodies.flatMap(stringsOf).join("\n").replaceAll("\\-", "-");
const idsIn = (text: string) => new Set(text.match(/\b1\d{5}\b/g));

describe.each(Object.entries(FORMS))("%s", (kind, { render, check }) => {
  test.each(["first", "join", "worse", "repeat"] as const)(
    "an incident with 5,000 rules names all of them (%s)",
    (reason) => {
      const bodies = render(incidentWith(RULES, { reason }));
      for (const body of bodies) check(body);
      const ids = idsIn(shown(bodies));
      const all = Array.from({ length: countNamed(kind, RULES) }, (_, index) => String(100_000 + index));
      expect(all.filter((id) => !ids.has(id))).toEqual([]);
      expect(bodies.length).toBeLessThanOrEqual(11);
    },
  );

  test.each(["advice", "acknowledged", "resolved"] as const)("%s does not repeat the list", (reason) => {
    const state = reason === "resolved" ? "resolved" : "acknowledged";
    const bodies = render(
      incidentWith(RULES, { reason, state, endedAt: reason === "resolved" ? NOW : null }),
    );
    for (const body of bodies) check(body);
    expect(idsIn(shown(bodies)).size).toBeLessThan(200);
  });

  test("a dozen rules need no second message", () => {
    const bodies = render(incidentWith(12)).filter((body) => body !== "");
    expect(bodies).toHaveLength(1);
    expect(idsIn(shown(bodies)).size).toBe(12);
    expect(shown(bodies)).not.toMatch(/and [\d,]+ more/);
  });

  test.each<[string, (index: number) => object]>([
    ["a zone each", (index) => ({ zoneId: 2_147_480_000 + index })],
    ["long names", (index) => ({ ruleId: `${index}-${"x".repeat(3_000)}` })],
    ["wide names", (index) => ({ ruleId: `${index} ${"💥".repeat(300)}` })],
    ["names that are escaped", (index) => ({ ruleId: `${index} ${'<&_*>`"\\'.repeat(60)}` })],
    ["empty names", () => ({ ruleId: "" })],
    ["hostile names", (index) => ({ ruleId: HOSTILE_IDS[index % HOSTILE_IDS.length] ?? "" })],
  ])("rules of %s stay within the limits, and the number of messages too", (_what, member) => {
    for (const reason of ["first", "resolved"] as const) {
      const ended = reason === "resolved" ? ({ state: "resolved", endedAt: NOW } as const) : {};
      const bodies = render(incidentWith(MANY_RULES, { reason, ...ended }, member));
      for (const body of bodies) check(body);
      expect(bodies.length).toBeLessThanOrEqual(11);
      const text = shown(bodies);
      if (kind === "webhook") continue;
      expect(text).not.toMatch(/https?:\/\/evil|www\./);
      // Elsewhere these are letters, or checked by the vendor's schema.
      const markup = kind.startsWith("slack") ? /<!channel>|<script/ : /https?:\/\/evil/;
      expect(text).not.toMatch(markup);
      expect(text.replaceAll("\u2060", "")).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    }
  });
});

describe("the outline", () => {
  const room = { rows: 2, rowChars: 100, chars: 100 };

  test("the largest members are shown with their counts, all others by name", () => {
    const members = outlineMembers(incidentWith(4), room);
    expect(members).toMatchObject({
      heading: "4 rules, worst first",
      rows: ["100000: 8 in 5 min, usually 12 · error", "100001: 7 in 5 min, usually 12 · error"],
      others: ["zone 101: 100002, 100003"],
      more: null,
    });
  });

  test.each(["x", "💥", "é"])(
    "names of %s that just fit are shown, and with one character more they are counted",
    (unit) => {
      const named = (size: number) =>
        outlineMembers(
          incidentWith(3, {}, () => ({ ruleId: unit.repeat(size) })),
          { ...room, chars: 60 },
        );
      const size = 60 - "zone 101: ".length - 1;
      expect(named(size)).toMatchObject({ others: [`zone 101: ${unit.repeat(size)}`], more: null });
      expect(named(size + 1)).toMatchObject({
        others: [],
        more: "and 1 more: longwatch alerts list --incident 7 --state all",
      });
    },
  );

  test("members that are not named are counted exactly, with the command that lists them", () => {
    const members = outlineMembers(incidentWith(RULES), { ...room, elsewhere: "in the thread" });
    expect(members?.more).toBe(
      "and 4,998 more (in the thread): longwatch alerts list --incident 7 --state all",
    );
    expect(members?.rest).toHaveLength(4_998);
    const { howToList: _, ...older } = incidentWith(RULES);
    expect(outlineMembers(older, room)?.more).toBe("and 4,998 more");
  });

  test("a part never exceeds its limit, and uses it", () => {
    const message = incidentWith(1_000);
    const parts = partMembers(message, message.members ?? [], { chars: 500, lineChars: 100 });
    for (const [index, { lines }] of parts.entries()) {
      const size = lines.slice(0, index === parts.length - 1 ? -1 : undefined).join("\n").length;
      expect(size).toBeLessThanOrEqual(500);
    }
    const full = parts.slice(0, -1).map(({ lines }) => lines.join("\n").length);
    expect(Math.min(...full)).toBeGreaterThan(400);
    expect(parts).toHaveLength(10);
    const named = idsIn(parts.flatMap(({ lines }) => lines).join("\n")).size;
    const left = Number(/and (\d+) more/.exec(parts.at(-1)?.lines.at(-1) ?? "")?.[1]);
    expect(named + left).toBe(1_000);
  });

  test("parts that hold every name count none as missing, and those that may be no more count the rest", () => {
    const message = incidentWith(100);
    const room = { chars: 500, lineChars: 100 };
    const parts = partMembers(message, message.members ?? [], room);
    expect(idsIn(parts.flatMap(({ lines }) => lines).join("\n")).size).toBe(100);
    expect(parts.flatMap(({ lines }) => lines).join("\n")).not.toContain("more");
    const [only, ...others] = partMembers(message, message.members ?? [], { ...room, most: 1 });
    expect(others).toEqual([]);
    const named = idsIn(only?.lines.slice(0, -1).join("\n") ?? "").size;
    expect(only?.lines.at(-1)).toContain(`and ${100 - named} more`);
  });

  test("only messages that name the members are followed by a list", () => {
    expect(showsMembers(incidentWith(9))).toBe(true);
    for (const reason of ["advice", "acknowledged", "resolved"] as const)
      expect(showsMembers(incidentWith(9, { reason }))).toBe(false);
    expect(showsMembers(incidentWith(9, { state: "resolved" }))).toBe(false);
    expect(showsMembers(incidentWith(0))).toBe(false);
  });

  test("the attached table has a line for every rule, in columns", () => {
    const [head, first, ...others] = toMembersFile(incidentWith(RULES)).trimEnd().split("\n");
    expect(head).toBe("zone\trule\tseverity\tevents\tin minutes\tusually");
    expect(first).toBe("101\t100000\terror\t10000\t5\t12");
    expect(others).toHaveLength(RULES - 1);
    const long = toMembersFile(incidentWith(RULES * 4, {}, () => ({ ruleId: "💥".repeat(300) }))).trimEnd();
    const cut = /^and ([\d,]+) more: longwatch alerts list --incident 7 --state all$/.exec(
      long.split("\n").at(-1) ?? "",
    );
    expect(long.split("\n").length - 2 + Number(cut?.[1]?.replaceAll(",", ""))).toBe(RULES * 4);
  });
});
