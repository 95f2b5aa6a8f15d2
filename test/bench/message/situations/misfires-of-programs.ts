import { MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import { JA4, person, phone, server } from "../clients.ts";
import { get, post, textFrom } from "../sites.ts";
import { by } from "../stage.ts";
import { PEOPLE } from "../texts.ts";
import { type CaseTruth, MISFIRE, type Situation, situation } from "./situation.ts";

const EITHER: CaseTruth = { truth: "misfire", accept: ["misfire", "broken-client"] };
const JSON_TYPE = "application/json";

/** Rules that match what a site's own pages, apps and partners send. */
export const MISFIRES_OF_PROGRAMS: readonly Situation[] = [
  situation("merge-patch-type", EITHER, { kinds: ["api"] }, ({ dice, start, pace, visit }) => {
    const app = "ShopApp/5.2.1 (iPhone; iOS 26.1)";
    pace(start, 240, 1.5, (at) =>
      visit(
        at,
        by(
          phone(dice, app),
          post(`/v2/users/${dice.below(9_999)}`, "name", "x", "application/merge-patch+json"),
        ),
      ),
    );
  }),
  situation("base64-field", MISFIRE, { kinds: ["shop", "news"] }, ({ dice, start, pace, visit }) =>
    pace(start, 200, 1, (at) =>
      visit(
        at,
        by(person(dice), {
          method: "POST",
          path: "/checkout/step2",
          body: {
            type: JSON_TYPE,
            parts: [
              ["state", PEOPLE.base64()],
              ["sig", dice.hex(40)],
            ],
          },
        }),
      ),
    ),
  ),
  situation("app-accept-header", EITHER, { kinds: ["api", "shop"] }, ({ dice, site, start, pace, send }) => {
    const app = "NewsReader/8.0 (Android 15)";
    pace(start, 300, 1.2, (at) => {
      const client = phone(dice, app);
      const headers = [["Accept", "application/json; charset=utf-8"]] as const;
      for (let page = dice.whole(1, 4); page > 0; page -= 1)
        send(at + page * 4_000, { ...by(client, get(site.pages(dice))), headers });
    });
  }),
  situation("partner-orders", EITHER, { kinds: ["api", "shop"] }, ({ dice, start, pace, send }) => {
    const client = server(dice, "Apache-HttpClient/5.2 (Java/21)", JA4.java);
    pace(start, 400, 1.3, (at) =>
      send(
        at,
        by(
          client,
          post(
            "/b2b/orders",
            "remark",
            dice.chance(0.5) ? PEOPLE.quoted(dice) : PEOPLE.code(dice),
            JSON_TYPE,
          ),
        ),
      ),
    );
  }),
  situation("graphql-client", MISFIRE, { kinds: ["api"], hours: [8, 18] }, ({ dice, start, pace, visit }) =>
    pace(start, 240, 1.6, (at) =>
      visit(at, by(person(dice), post("/graphql", "query", PEOPLE.graphql(dice), JSON_TYPE))),
    ),
  ),
  situation("beacon-type", EITHER, { kinds: ["shop", "news"] }, ({ dice, start, pace, send }) =>
    pace(start, 180, 3, (at) =>
      send(
        at,
        by(
          person(dice),
          post("/metrics/vitals", "lcp", String(dice.below(4_000)), "application/reports+json"),
        ),
      ),
    ),
  ),
  situation("new-method", EITHER, { kinds: ["shop", "portal"] }, ({ dice, start, pace, visit }) =>
    pace(start, 240, 1, (at) =>
      visit(
        at,
        by(person(dice), { ...post(`/cart/items/${dice.below(900)}`, "qty", "2", JSON_TYPE), method: "PUT" }),
      ),
    ),
  ),
  situation(
    "error-page",
    { truth: "misfire", accept: ["misfire", "broken-client", "unclear"] },
    { kinds: ["shop", "news"] },
    ({ dice, start, pace, visit }) =>
      pace(start, 120, 2.5, (at) =>
        visit(at, {
          ...by(person(dice), get(`/p/${dice.pick(["lamp", "kettle", "chair"])}`)),
          answer: dice.chance(0.8) ? "php" : "sql",
        }),
      ),
  ),
  situation(
    "night-import",
    { truth: "misfire", accept: ["misfire", "broken-client"], tell: "may" },
    { kinds: ["shop"], hours: [1, 4] },
    ({ dice, start, send }) => {
      const client = server(dice, "python-requests/2.32.3", JA4.python);
      for (let index = 0; index < 420; index += 1)
        send(
          start + index * 2_500,
          by(
            client,
            post("/admin/import", "html", dice.chance(0.5) ? PEOPLE.html(dice) : textFrom("richtext", dice)),
          ),
        );
    },
  ),
  situation(
    "single-page-deploy",
    MISFIRE,
    { kinds: ["portal", "shop"], hours: [8, 15] },
    ({ dice, start, pace, visit }) => {
      const staff = Array.from({ length: 70 }, () => person(dice));
      pace(start, 180, 1.2, (at) =>
        visit(
          at,
          by(dice.pick(staff), {
            method: "POST",
            path: "/app/state",
            body: {
              type: JSON_TYPE,
              parts: [
                ["expr", `function() { return item.price >= ${dice.below(90)} && item['stock'] != 0; }`],
              ],
            },
          }),
        ),
      );
    },
  ),
];

/** Clients that repeat a request that cannot succeed. */
const BROKEN: CaseTruth = { truth: "broken-client", page: "no" };
const BROKEN_OR_MISFIRE: CaseTruth = {
  truth: "broken-client",
  accept: ["broken-client", "misfire"],
  page: "no",
};

export const BROKEN_CLIENTS: readonly Situation[] = [
  situation("retry-loop", BROKEN, { paranoia: 2 }, ({ dice, start, send }) => {
    const request = by(
      phone(dice, "FieldApp/2.4.0 (Android 14)"),
      post("/sync/batch", "note", PEOPLE.quoted(dice), JSON_TYPE),
    );
    for (let index = 0; index < 800; index += 1)
      send(start + index * 6 * SECOND_MS + dice.below(900), request);
  }),
  situation("bad-cron", BROKEN, {}, ({ dice, start, send }) => {
    const request = by(
      server(dice, "curl/8.5.0", JA4.curl),
      get("/export/orders", "range", "2026-01-01 -- 2026-01-31 and 1=1"),
    );
    for (let index = 0; index < 900; index += 1) send(start + index * 10 * SECOND_MS, request);
  }),
  situation(
    "feed-readers",
    { ...BROKEN_OR_MISFIRE, accept: ["broken-client", "misfire", "crawler"] },
    { kinds: ["news"] },
    ({ dice, start, send }) => {
      for (let reader = 0; reader < 25; reader += 1) {
        const request = by(
          server(dice, "FreshRSS/1.24.1 (Linux; https://freshrss.org)", JA4.node),
          get("/feed", "filter", "tag='sport' or tag='news'"),
        );
        for (let at = start + dice.below(5 * MINUTE_MS); at < start + 240 * MINUTE_MS; at += 5 * MINUTE_MS)
          send(at, request);
      }
    },
  ),
  situation("old-app-version", BROKEN_OR_MISFIRE, { kinds: ["api", "shop"] }, ({ dice, start, send }) => {
    for (let user = 0; user < 60; user += 1) {
      const parts = [["items", dice.hex(20)]] as const;
      const request = by(phone(dice, "ShopApp/3.0.4 (iPhone; iOS 17.2)"), {
        method: "POST",
        path: "/v1/sync",
        body: { type: JSON_TYPE, parts, isBroken: true },
      });
      const from = start + dice.below(60 * MINUTE_MS);
      for (let index = dice.whole(15, 60); index > 0; index -= 1)
        send(from + index * 45 * SECOND_MS, request);
    }
  }),
  situation("device-fleet", BROKEN_OR_MISFIRE, { kinds: ["api"], paranoia: 2 }, ({ dice, start, send }) => {
    for (let device = 0; device < 45; device += 1) {
      const client = { ...phone(dice, ""), sendsAccept: false };
      const request = by(client, {
        method: "POST",
        path: "/devices/state",
        body: { type: null, parts: [["v", "21.5; -- 0"]] },
      });
      for (let at = start + dice.below(10 * MINUTE_MS); at < start + 180 * MINUTE_MS; at += 10 * MINUTE_MS)
        send(at, request);
    }
  }),
  situation(
    "loud-monitor",
    { ...BROKEN_OR_MISFIRE, tell: "may" },
    { paranoia: 2 },
    ({ dice, start, send }) => {
      const request = by({ ...server(dice, "", JA4.curl), sendsAccept: false }, get("/health"));
      for (let index = 0; index < 1_200; index += 1) send(start + index * 5 * SECOND_MS, request);
    },
  ),
  situation("webhook-retries", BROKEN_OR_MISFIRE, { kinds: ["shop", "api"] }, ({ dice, start, send }) => {
    const client = server(dice, "PayHook/1.0 (+https://pay.example/webhooks)", JA4.go);
    const bodies = Array.from({ length: 6 }, () => PEOPLE.code(dice));
    for (let index = 0; index < 600; index += 1)
      send(
        start + index * 12 * SECOND_MS,
        by(client, post("/hooks/payment", "payload", bodies[index % bodies.length] ?? "", JSON_TYPE)),
      );
  }),
  situation("forgotten-tab", BROKEN, { kinds: ["portal", "shop"], paranoia: 2 }, ({ dice, start, send }) => {
    const client = person(dice);
    const cookies = [["draft", PEOPLE.html(dice)]] as const;
    for (let index = 0; index < 900; index += 1)
      send(start + index * 8 * SECOND_MS, { ...by(client, get("/poll/messages")), cookies });
  }),
];
