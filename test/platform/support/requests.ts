const DIGEST = `sha256:${"a".repeat(64)}`;
/** A container template with every kind of member. */
export const container = {
  name: "web",
  imageName: "team/nginx",
  imageNamespace: "library",
  imageTag: "1.29-alpine",
  imageRegistryId: "12",
  imageDigest: DIGEST,
  imagePullPolicy: "ifNotPresent" as const,
  entryPoint: { command: "nginx", argumentsArray: ["-g"] },
  probes: {
    startup: null,
    liveness: {
      periodSeconds: 10,
      httpGet: { request: { path: "/", portNumber: 80 }, response: { expectedStatusCode: "ok" } },
    },
  },
  environmentVariables: [{ name: "A", value: "" }],
  endpoints: [
    {
      displayName: "web",
      cdn: {
        isSslEnabled: true,
        pullZoneId: 7,
        portMappings: [{ containerPort: 80, protocols: ["tcp" as const] }],
      },
    },
  ],
  volumeMounts: [{ name: "data", mountPath: "/var/lib/data" }],
};
/** An application with that container. */
export const app = {
  name: "my shop-1",
  autoScaling: { min: 1, max: 3 },
  regionSettings: { allowedRegionIds: ["DE"], nodeSelectors: { disk: "ssd" } },
  terminationGracePeriodSeconds: 30,
  containerTemplates: [{ ...container, id: "a-1" }],
  volumes: [{ name: "data", size: 5 }],
};
