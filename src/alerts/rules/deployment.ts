import { z } from "zod";
import { toLine } from "#lib/text.ts";

/** A deployment that a webhook has reported. Texts are hostile. */
export interface Deployment {
  /** Null if the tool did not say when. */
  readonly atMs: number | null;
  readonly text: string;
  readonly link: string | null;
  /** Identifies it. */
  readonly source: string;
}

const text = z.string().catch("");
const id = z.union([z.int(), z.string()]).transform(String);

/** https://docs.github.com/en/webhooks/webhook-events-and-payloads#deployment_status */
const GitHub = z.object({
  deployment_status: z.object({
    state: z.literal("success"),
    target_url: text,
    created_at: text,
  }),
  deployment: z.object({ id, ref: text, sha: text, environment: text }),
  repository: z.object({ full_name: text }).catch({ full_name: "" }),
});

/** https://docs.gitlab.com/user/project/integrations/webhook_events/#deployment-events */
const GitLab = z.object({
  object_kind: z.literal("deployment"),
  status: z.literal("success"),
  status_changed_at: text,
  deployment_id: id,
  environment: text,
  project: z.object({ path_with_namespace: text }).catch({ path_with_namespace: "" }),
  ref: text,
  short_sha: text,
  deployable_url: text,
});

const MOST_CHARS = 200;
const SHORT_SHA = 8;

/** Returns a deployment of GitHub or GitLab that has succeeded; null for anything else. */
export function readDeployment(body: unknown): Deployment | null {
  const hub = GitHub.safeParse(body).data;
  if (hub !== undefined) {
    const { deployment, deployment_status: status, repository } = hub;
    return describe({
      ...deployment,
      sha: deployment.sha.slice(0, SHORT_SHA),
      project: repository.full_name,
      at: status.created_at,
      url: status.target_url,
      source: `github ${repository.full_name} ${deployment.id}`,
    });
  }
  const lab = GitLab.safeParse(body).data;
  if (lab === undefined) return null;
  const project = lab.project.path_with_namespace;
  return describe({
    ref: lab.ref,
    sha: lab.short_sha,
    environment: lab.environment,
    project,
    at: lab.status_changed_at,
    url: lab.deployable_url,
    source: `gitlab ${project} ${lab.deployment_id}`,
  });
}

function describe(of: {
  readonly ref: string;
  readonly sha: string;
  readonly environment: string;
  readonly project: string;
  readonly at: string;
  readonly url: string;
  readonly source: string;
}): Deployment {
  const { ref, sha, environment, project, at, url, source } = of;
  const version = [ref, sha === "" || sha === ref ? "" : `(${sha})`].filter((part) => part !== "").join(" ");
  const where = [project, environment].filter((part) => part !== "").join(", ");
  // GitLab writes 2021-04-28 21:50:00 +0200.
  const atMs = Date.parse(at.replace(/^(\S+) (\S+) ([+-]\d{4})$/, "$1T$2$3"));
  return {
    atMs: Number.isNaN(atMs) ? null : atMs,
    text: toLine(`deploy ${version}${where === "" ? "" : ` of ${where}`}`, MOST_CHARS),
    link: /^https:\/\/\S{1,490}$/.test(url) ? url : null,
    source: source.slice(0, 300),
  };
}
