import { z } from "zod";
import { Port } from "./container-probes.ts";
import { Int32Id } from "./int32.ts";
import { listOf } from "./list-of.ts";
import { Text } from "./text.ts";

const PortMapping = z.strictObject({
  containerPort: Port,
  exposedPort: Port.nullish(),
  protocols: z.array(z.enum(["tcp", "udp", "sctp"])).optional(),
});

/** One endpoint of a container. A CDN endpoint takes exactly one port mapping. */
export const EndpointRequest = z.strictObject({
  displayName: z.string().min(1).max(50),
  cdn: z
    .strictObject({
      isSslEnabled: z.boolean().optional(),
      stickySessions: z
        .strictObject({
          enabled: z.boolean().optional(),
          sessionHeaders: z.array(z.string()).min(1).max(3),
          cookieName: z.string().optional(),
        })
        .nullish(),
      pullZoneId: Int32Id.nullish(),
      portMappings: z.array(PortMapping).length(1).optional(),
    })
    .nullish(),
  anycast: z.strictObject({ type: z.literal("iPv4"), portMappings: z.array(PortMapping).min(1) }).nullish(),
  internalIp: z.strictObject({ portMappings: z.array(PortMapping).min(1) }).nullish(),
});
export type EndpointRequest = z.infer<typeof EndpointRequest>;

const Address = z.looseObject({ address: Text, region: Text });

export const Endpoint = z.looseObject({
  id: Text,
  displayName: Text,
  publicHost: Text,
  isSslEnabled: z.boolean().nullish(),
  pullZoneId: Text,
  portMappings: listOf(
    z.looseObject({
      containerPort: z.int().nullish(),
      exposedPort: z.int().nullish(),
      protocols: listOf(z.string()),
    }),
  ),
  stickySessions: z
    .looseObject({ enabled: z.boolean().nullish(), sessionHeaders: listOf(z.string()), cookieName: Text })
    .nullish(),
  internalIpAddresses: listOf(Address),
  publicIpAddresses: listOf(Address),
});
export type Endpoint = z.infer<typeof Endpoint>;
