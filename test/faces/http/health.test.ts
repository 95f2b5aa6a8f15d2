import { expect, test } from "vitest";
import type { Health, HealthCheck } from "#faces/http/readiness.ts";
import { startHttp } from "./start-http.ts";

function check(name: string, health: Health | Error, isRequired = true): HealthCheck {
  return {
    name,
    isRequired,
    check: async () => {
      if (health instanceof Error) throw health;
      return health;
    },
  };
}

async function readyz(url: string) {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: await response.json() };
}

test("it is alive while every check fails", async () => {
  const { url } = await startHttp({ checks: [check("postgres", new Error("down"))] });
  const response = await fetch(`${url}/livez`);

  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ state: "ok", uptimeSeconds: expect.any(Number) });
});

test("it is ready when every check is ok", async () => {
  const { url } = await startHttp({ checks: [check("postgres", { state: "ok" })] });

  expect(await readyz(url)).toEqual({
    status: 200,
    body: { state: "ok", checks: { postgres: { state: "ok" } } },
  });
});

test("a degraded part is named and leaves it ready", async () => {
  const { url } = await startHttp({
    checks: [
      check("postgres", { state: "ok" }),
      check("platform", { state: "degraded", detail: "last answer 5 minutes ago" }),
    ],
  });

  expect(await readyz(url)).toMatchObject({
    status: 200,
    body: {
      state: "degraded",
      checks: { platform: { state: "degraded", detail: "last answer 5 minutes ago" } },
    },
  });
});

test("a failing required part makes the service unready, whatever the other parts are", async () => {
  const { url } = await startHttp({
    checks: [
      check("redis", { state: "degraded" }),
      check("migrations", { state: "failing", detail: "1 is missing" }),
    ],
  });

  expect(await readyz(url)).toMatchObject({ status: 503, body: { state: "failing" } });
});

test("F20: a check that throws fails a required part and degrades an optional one; only the log says why", async () => {
  const reason = new Error("connect ECONNREFUSED 10.1.2.3:5432 select secret_column");
  const required = await startHttp({ checks: [check("postgres", reason)] });
  const optional = await startHttp({ checks: [check("redis", reason, false)] });

  const answers = [await readyz(required.url), await readyz(optional.url)];
  expect(answers).toMatchObject([
    { status: 503, body: { state: "failing" } },
    { status: 200, body: { state: "degraded" } },
  ]);
  expect(JSON.stringify(answers)).not.toMatch(/10\.1\.2\.3|secret_column/);
  expect(required.lines.join("")).toContain("secret_column");
});

test("a check that hangs is bounded, and is not asked again before it has answered", async () => {
  let asked = 0;
  const answer = Promise.withResolvers<Health>();
  const hanging: HealthCheck = {
    name: "postgres",
    isRequired: true,
    check() {
      asked += 1;
      return answer.promise;
    },
  };
  const { url } = await startHttp({ checks: [hanging], checkTimeoutMs: 20 });

  expect(await readyz(url)).toMatchObject({
    status: 503,
    body: { checks: { postgres: { state: "failing", detail: "the check did not end within 20 ms" } } },
  });
  await readyz(url);
  expect(asked).toBe(1);

  answer.resolve({ state: "ok" });
  await answer.promise;
  expect(await readyz(url)).toMatchObject({ status: 200 });
});
