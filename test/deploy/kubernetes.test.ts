import { readFileSync } from "node:fs";
import path from "node:path";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Service } from "kubernetes-models/v1";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { describeConfig } from "#config/config.ts";
import { configFile } from "#config/file/config-file-schema.ts";

const FOLDER = path.join(import.meta.dirname, "../../deploy/kubernetes");
const KINDS = { Deployment, Job, NetworkPolicy, PodDisruptionBudget, Service };

/** Of every kind here, at least one of these fields has another type. */
const WRONG = { replicas: "two", ports: 1, podSelector: 1, template: 1, selector: 1 };

const read = (file: string) => readFileSync(path.join(FOLDER, file), "utf8");
const { resources } = parse(read("kustomization.yaml")) as { resources: readonly string[] };
const objects = resources.flatMap((file) => parseAllDocuments(read(file)).map((document) => document.toJS()));
const ofKind = (kind: keyof typeof KINDS) => objects.filter((object) => object.kind === kind);

test.each(objects.map((object) => [object.kind, object.metadata.name, object]))(
  "the Kubernetes %s %s is valid by the schema of its API version",
  (kind: keyof typeof KINDS, _name, object) => {
    expect(() => new KINDS[kind](object).validate()).not.toThrow();
    const wrong = { ...object, spec: { ...object.spec, ...WRONG } };
    expect(() => new KINDS[kind](wrong).validate()).toThrow(/spec/);
  },
);

test("each role has a Deployment with probes, limits and no rights, and a budget that keeps one process", () => {
  const roles = ofKind("Deployment").map(({ metadata }) => metadata.labels.role);
  expect(roles).toEqual(["ingest", "derive", "alerts", "http"]);
  expect(ofKind("PodDisruptionBudget").map(({ spec }) => spec.selector.matchLabels.role)).toEqual(roles);
  for (const { spec } of ofKind("Deployment")) {
    const { containers, automountServiceAccountToken, securityContext } = spec.template.spec;
    expect([automountServiceAccountToken, securityContext.runAsNonRoot]).toEqual([false, true]);
    for (const container of containers) {
      expect(container.env).toEqual([{ name: "LONGWATCH_ROLES", value: spec.template.metadata.labels.role }]);
      expect(container).toMatchObject({
        livenessProbe: expect.anything(),
        readinessProbe: expect.anything(),
        startupProbe: expect.anything(),
        resources: { limits: { memory: "2Gi" } },
        securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
      });
    }
  }
});

test("the configuration file beside the Kubernetes objects is valid", () => {
  expect(configFile.safeParse(parse(read("longwatch.yaml"))).error).toBeUndefined();
});

test("every variable of the Kubernetes settings exists, and none is a secret", () => {
  const settings = describeConfig();
  const open = settings
    .filter(({ variables }) => variables.length === 1)
    .map(({ variables }) => variables[0]);
  const given = read("settings.env")
    .trim()
    .split("\n")
    .map((line) => line.split("=")[0]);
  expect(given.filter((name) => !open.includes(name ?? ""))).toEqual([]);
});
