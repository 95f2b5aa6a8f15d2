import type { ContainerRequest, EndpointRequest } from "./container-request.ts";
import type { App, ContainerTemplate, Resources } from "./resources.ts";

const NO_ENTRY_POINT = {
  command: "",
  commandArray: [],
  arguments: "",
  argumentsArray: [],
  workingDirectory: "",
};
const NO_PROBES = { startup: null, readiness: null, liveness: null };

function toPortMappings(
  mappings: readonly {
    containerPort: number;
    exposedPort?: number | null | undefined;
    protocols?: readonly string[] | null | undefined;
  }[],
) {
  return mappings.map(({ containerPort, exposedPort, protocols }) => ({
    containerPort,
    exposedPort: exposedPort ?? containerPort,
    protocols: protocols ?? ["tcp"],
  }));
}

function toEndpoint(endpoint: EndpointRequest, app: App, resources: Resources) {
  const { displayName, cdn, anycast } = endpoint;
  const host = `${displayName.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-")}-${resources.newId(5).toLowerCase()}`;
  const sticky = cdn?.stickySessions;
  return {
    id: `${app.id.slice(0, 8)}-${displayName}-${resources.newId(6)}`,
    displayName,
    publicHost: `${host}.edge.example.test`,
    type: anycast ? "anycast" : "cdn",
    isSslEnabled: cdn?.isSslEnabled ?? false,
    pullZoneId: cdn?.pullZoneId ? String(cdn.pullZoneId) : "",
    portMappings: toPortMappings(anycast?.portMappings ?? cdn?.portMappings ?? []),
    stickySessions: {
      enabled: sticky?.enabled ?? false,
      sessionHeaders: sticky?.sessionHeaders ?? [],
      cookieName: sticky?.cookieName ?? "",
    },
    internalIpAddresses: [],
    publicIpAddresses: [],
  };
}

/** Returns the template as the platform returns it: defaults filled in, missing strings empty, unused probes null. */
export function toContainerTemplate(
  request: ContainerRequest,
  app: App,
  resources: Resources,
): ContainerTemplate {
  const { imageNamespace, imageName, imageTag } = request;
  return {
    id: request.id ?? `${app.id}-${resources.newId(4)}`,
    name: request.name,
    packageId: resources.newUuid(),
    image: request.image ?? `${imageNamespace}/${imageName}:${imageTag}`,
    imageName,
    imageNamespace,
    imageTag,
    imageRegistryId: request.imageRegistryId,
    imageDigest: request.imageDigest ?? "",
    imagePullPolicy: request.imagePullPolicy ?? "ifNotPresent",
    entryPoint: { ...NO_ENTRY_POINT, ...request.entryPoint },
    probes: { ...NO_PROBES, ...request.probes },
    environmentVariables: request.environmentVariables ?? [],
    endpoints: (request.endpoints ?? []).map((endpoint) => toEndpoint(endpoint, app, resources)),
    volumeMounts: request.volumeMounts ?? [],
  };
}
