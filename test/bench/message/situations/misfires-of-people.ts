import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { office, person } from "../clients.ts";
import { get, post, textFrom, upload } from "../sites.ts";
import { by } from "../stage.ts";
import { PEOPLE, vary } from "../texts.ts";
import { MISFIRE, type Situation, situation } from "./situation.ts";

/** Rules that match what people write, upload and click. */
export const MISFIRES_OF_PEOPLE: readonly Situation[] = [
  situation("quoted-reviews", MISFIRE, { kinds: ["shop"], paranoia: 2 }, ({ dice, start, pace, visit }) =>
    pace(start, 260, 0.5, (at) =>
      visit(at, by(person(dice), post(`/p/${dice.whole(1, 60)}/reviews`, "title", PEOPLE.quoted(dice)))),
    ),
  ),
  situation(
    "code-in-forum",
    MISFIRE,
    { kinds: ["forum"], hours: [15, 21] },
    ({ dice, start, pace, visit }) => {
      const members = Array.from({ length: 45 }, () => person(dice));
      pace(start, 180, 0.7, (at) =>
        visit(
          at,
          by(
            dice.pick(members),
            post(
              "/posts",
              "raw",
              dice.chance(0.6) ? PEOPLE.code(dice) : vary(dice, textFrom("markdown", dice)),
            ),
          ),
        ),
      );
    },
  ),
  situation(
    "rich-text-editor",
    MISFIRE,
    { kinds: ["news"], paranoia: 2, hours: [7, 14] },
    ({ dice, start, pace, visit }) => {
      const editors = Array.from({ length: 7 }, () => person(dice));
      pace(start, 300, 0.35, (at) =>
        visit(
          at,
          by(
            dice.pick(editors),
            post(
              "/wp-admin/post.php",
              "content",
              dice.chance(0.5) ? PEOPLE.html(dice) : textFrom("richtext", dice),
            ),
          ),
        ),
      );
    },
  ),
  situation(
    "odd-file-names",
    MISFIRE,
    { kinds: ["portal", "forum"], hours: [7, 13] },
    ({ dice, start, pace, visit }) =>
      pace(start, 240, 0.6, (at) =>
        visit(
          at,
          by(
            person(dice),
            upload(
              `/documents/${dice.whole(1, 900)}`,
              dice.chance(0.5) ? PEOPLE.fileName(dice) : textFrom("upload", dice),
            ),
          ),
        ),
      ),
  ),
  situation(
    "consent-cookie",
    MISFIRE,
    { kinds: ["shop", "news"], paranoia: 2 },
    ({ dice, site, start, pace, visit }) =>
      pace(start, 150, 3, (at) => {
        const client = person(dice);
        const request = {
          ...by(client, get(site.pages(dice))),
          cookies: [["consent", PEOPLE.consent(dice)] as const],
        };
        for (let page = dice.whole(0, 3); page >= 0; page -= 1) visit(at + page * 20_000, request);
      }),
  ),
  situation("search-operators", MISFIRE, { kinds: ["shop", "news"] }, ({ dice, site, start, pace, visit }) =>
    pace(start, 300, 0.8, (at) =>
      visit(
        at,
        by(
          person(dice),
          get(site.search, "q", dice.chance(0.6) ? PEOPLE.search(dice) : textFrom("search", dice)),
        ),
      ),
    ),
  ),
  situation(
    "newsletter-links",
    MISFIRE,
    { kinds: ["shop", "news"], paranoia: 2 },
    ({ dice, start, visit }) => {
      const links = [PEOPLE.link(dice), PEOPLE.link(dice), textFrom("link", dice)];
      for (let index = dice.whole(280, 420); index > 0; index -= 1)
        visit(start + dice.wait(70 * MINUTE_MS), {
          ...by(person(dice), get("/l/news", "url", dice.pick(links))),
          referer: null,
        });
    },
  ),
  situation(
    "stricter-passwords",
    MISFIRE,
    { kinds: ["shop", "portal"], paranoia: 2 },
    ({ dice, start, pace, visit }) =>
      pace(start, 240, 0.8, (at) =>
        visit(
          at,
          by(
            person(dice),
            post(
              "/account/password",
              "new_password",
              dice.chance(0.5) ? PEOPLE.password(dice) : textFrom("login", dice),
            ),
          ),
        ),
      ),
  ),
  situation("filter-links", MISFIRE, { kinds: ["shop"] }, ({ dice, start, pace, visit }) =>
    pace(start, 240, 1, (at) =>
      visit(at, by(person(dice), get("/c/sale", "filter", textFrom("filter", dice)))),
    ),
  ),
  situation(
    "office-network",
    MISFIRE,
    { kinds: ["portal"], paranoia: 2, hours: [7, 11] },
    ({ dice, start, pace, visit }) => {
      const people = office(dice, 45);
      pace(start, 300, 0.9, (at) =>
        visit(
          at,
          by(
            dice.pick(people),
            post(
              "/app/tickets",
              "message",
              dice.chance(0.5) ? vary(dice, textFrom("support", dice)) : PEOPLE.quoted(dice),
            ),
          ),
        ),
      );
    },
  ),
  situation(
    "paranoia-raised",
    MISFIRE,
    { kinds: ["shop", "forum"], paranoia: 2, isLevelRaised: true, visitsPerDay: 130 },
    ({ dice, site, start, pace, visit }) =>
      pace(start, 360, 1, (at) => visit(at, by(person(dice), dice.weighted(site.visits)(dice)))),
  ),
  situation(
    "flash-sale",
    { ...MISFIRE, tell: "may", page: "no" },
    { kinds: ["shop"] },
    ({ dice, site, start, pace, visit }) =>
      pace(start, 50, 6, (at) => visit(at, by(person(dice), dice.weighted(site.visits)(dice)))),
  ),
  situation(
    "survey-answers",
    { ...MISFIRE, page: "no" },
    { mode: "log", paranoia: 2 },
    ({ dice, start, pace, visit }) =>
      pace(start, 240, 1.2, (at) =>
        visit(at, by(person(dice), post("/survey/answers", "a4", PEOPLE.quoted(dice)))),
      ),
  ),
  situation(
    "anonymous-misfire",
    MISFIRE,
    { kinds: ["shop"], paranoia: 2, addresses: "anonymous" },
    ({ dice, start, pace, visit }) =>
      pace(start, 200, 1, (at) =>
        visit(at, by(person(dice), post("/contact", "message", PEOPLE.quoted(dice)))),
      ),
  ),
  situation(
    "masked-misfire",
    MISFIRE,
    { kinds: ["forum"], paranoia: 2, addresses: "masked" },
    ({ dice, start, pace, visit }) =>
      pace(start, 200, 0.9, (at) => visit(at, by(person(dice), post("/posts", "raw", PEOPLE.html(dice))))),
  ),
  situation(
    "first-day-misfire",
    MISFIRE,
    { kinds: ["shop"], paranoia: 2, isFirstDay: true },
    ({ dice, start, pace, visit }) =>
      pace(start, 180, 1.2, (at) =>
        visit(at, by(person(dice), post("/checkout/note", "note", PEOPLE.quoted(dice)))),
      ),
  ),
  situation(
    "term-papers",
    MISFIRE,
    { kinds: ["portal", "forum"], hours: [8, 13] },
    ({ dice, start, visit }) => {
      const students = Array.from({ length: 60 }, () => person(dice));
      const deadline = start + 3 * HOUR_MS;
      for (let index = 150; index > 0; index -= 1)
        visit(
          Math.max(start, deadline - dice.wait(45 * MINUTE_MS)),
          by(dice.pick(students), post("/exam/answers", "answer", PEOPLE.code(dice))),
        );
    },
  ),
];
