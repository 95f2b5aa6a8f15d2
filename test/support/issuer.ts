import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { createSecret } from "#lib/secret.ts";

const CLIENT = { id: "longwatch", secret: "the client's own secret" };

export interface TestIssuer {
  readonly url: string;
  /** The person who signs in there next, and the claims that the issuer has of the person. */
  account: { readonly sub: string; readonly [claim: string]: unknown };
  /** How long the ID tokens last. */
  idTokenSeconds: number;
  /** Returns the ID token that is sent instead of the issuer's own; null sends that. */
  forge: ((own: IdTokenParts) => string) | null;
  /** Paths that were requested. */
  readonly requests: string[];
  readonly settings: (roles: SignIn["roles"], more?: Partial<SignIn>) => SignIn;
  close(): Promise<void>;
}

interface IdTokenParts {
  readonly header: object;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly key: KeyObject;
  readonly publicKey?: KeyObject;
}

/** Returns a token that the key has signed with RS256. */
export function signToken({ header, claims, key }: IdTokenParts): string {
  const signed = toTokenText(header, claims);
  return `${signed}.${createSign("sha256").update(signed).sign(key).toString("base64url")}`;
}

export function toTokenText(header: object, claims: object): string {
  return [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
}

/** Lets the answer of the token endpoint have another ID token. */
function changeIdToken(response: ServerResponse, change: (text: string) => string): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse;
  response.end = ((body: string) => {
    const answer = JSON.parse(body) as { id_token?: string };
    const changed = JSON.stringify({ ...answer, id_token: change(answer.id_token ?? "") });
    response.setHeader("content-length", Buffer.byteLength(changed));
    return end(changed);
  }) as typeof response.end;
}

/** A real OpenID Connect issuer on loopback, at which everybody is `account`, without a question. */
export async function startIssuer({
  port = 0,
  host = "127.0.0.1",
  redirectUri,
}: {
  readonly port?: number;
  /** A name of the loopback address. */
  readonly host?: string;
  readonly redirectUri: string;
}): Promise<TestIssuer> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  const issuer: TestIssuer = {
    url,
    account: { sub: "ada", email: "ada@example.org", email_verified: true, groups: ["desk"] },
    idTokenSeconds: 3_600,
    forge: null,
    requests: [],
    settings: (roles, changes = {}) => ({
      label: "Example",
      issuer: url,
      clientId: CLIENT.id,
      clientSecret: createSecret(CLIENT.secret),
      scopes: ["openid", "profile", "email", "groups"],
      claim: "groups",
      roles,
      allowPrivateNetworks: true,
      ...changes,
    }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const { privateKey: key, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const jwk = { ...key.export({ format: "jwk" }), kid: "test", use: "sig", alg: "RS256" };
  const provider = new Provider(url, {
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [redirectUri],
      },
    ],
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "preferred_username"],
      groups: ["groups"],
    },
    scopes: ["openid", "email", "profile", "groups"],
    cookies: { keys: ["a key of the test"] },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context: { body: string }, form: string) => {
          const button = '<button name="logout" value="yes">Yes, sign out</button></form>';
          context.body = form.replace("</form>", button);
        },
      },
    },
    ttl: {
      IdToken: () => issuer.idTokenSeconds,
      AccessToken: 600,
      Grant: 600,
      Interaction: 600,
      Session: 600,
    },
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ ...issuer.account, sub }),
    }),
    loadExistingGrant: async ({ oidc }: Parameters<typeof grantAll>[1]) => grantAll(provider, { oidc }),
    interactions: { url: () => "/interaction" },
  });
  const answer = provider.callback();
  server.on("request", (request, response) => {
    issuer.requests.push(request.url ?? "");
    const { forge } = issuer;
    if (forge !== null && request.url === "/token")
      changeIdToken(response, (own) => {
        const [header = {}, claims = {}] = own
          .split(".")
          .slice(0, 2)
          .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>);
        return forge({ header, claims, key, publicKey });
      });
    if (request.url !== "/interaction") return answer(request, response);
    const login = { accountId: issuer.account.sub };
    void provider.interactionFinished(request, response, { login });
  });
  return issuer;
}

/** Consents for the person to everything that the client asks for. */
async function grantAll(
  provider: Provider,
  {
    oidc,
  }: {
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly session: { readonly accountId: string };
    };
  },
) {
  const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
  grant.addOIDCScope("openid email profile groups");
  await grant.save();
  return grant;
}

/** A browser's cookies at one host, and its way through redirects. */
export function createVisitor() {
  const cookies = new Map<string, string>();
  /** Follows redirects until one leaves the issuer, and returns that address; null if the last answer is a page. */
  async function follow(
    start: string,
    init: { method?: string; body?: URLSearchParams } = {},
  ): Promise<{ left: string | null; body: string }> {
    const { origin } = new URL(start);
    let next = start;
    for (let turn = 0; turn < 10; turn++) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const answer = await fetch(next, {
        ...(turn === 0 ? init : {}),
        redirect: "manual",
        headers: { cookie },
      });
      for (const one of answer.headers.getSetCookie()) {
        const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
        cookies.set(name, value);
      }
      const location = answer.headers.get("location");
      if (location === null) return { left: null, body: await answer.text() };
      next = new URL(location, next).href;
      if (new URL(next).origin !== origin) return { left: next, body: "" };
    }
    throw new Error("the issuer redirects for ever");
  }
  return { follow };
}
