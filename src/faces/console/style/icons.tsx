/** The icons and the logo. */

import { Group } from "@mantine/core";
import type { SVGProps } from "react";

const PATHS = {
  overview: "M3 13h5v8H3zM10 3h5v18h-5zM17 9h4v12h-4z",
  explorer: "M10.5 3a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15M16 16l5 5",
  alerts: "M12 3a6 6 0 0 0-6 6c0 6-3 7-3 7h18s-3-1-3-7a6 6 0 0 0-6-6M10 20a2 2 0 0 0 4 0",
  silences: "M12 3a6 6 0 0 0-6 6c0 6-3 7-3 7h18s-3-1-3-7a6 6 0 0 0-6-6M10 20a2 2 0 0 0 4 0M3 3l18 18",
  rules: "M4 6h16M4 12h10M4 18h6",
  coverage:
    "M4 4h4v4H4zM10 4h4v4h-4zM16 4h4v4h-4zM4 10h4v4H4zM10 10h4v4h-4zM16 10h4v4h-4zM4 16h4v4H4zM10 16h4v4h-4z",
  digest: "M5 3h14v18H5zM9 8h6M9 12h6M9 16h3",
  operations:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v4M12 18v4M2 12h4M18 12h4M5 5l3 3M16 16l3 3M19 5l-3 3M8 16l-3 3",
  sun: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10M12 1v3M12 20v3M1 12h3M20 12h3M4 4l2 2M18 18l2 2M20 4l-2 2M6 18l-2 2",
  moon: "M20 14A8 8 0 1 1 10 4a7 7 0 0 0 10 10z",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 21c0-5 4-7 8-7s8 2 8 7",
  help: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 17v.1",
  play: "M7 5v14l11-7z",
  pause: "M8 5v14M16 5v14",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  download: "M12 3v12M7 11l5 5 5-5M4 21h16",
  bookmark: "M6 3h12v18l-6-4-6 4z",
  zoomOut: "M10.5 3a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15M16 16l5 5M7 10.5h7",
  warning: "M12 3L2 20h20zM12 10v4M12 17v.1",
  check: "M4 12l5 5L20 6",
} as const;
export type IconName = keyof typeof PATHS;

/** A small line drawing. The text beside it, or the label of its button, says what it means. */
export function Icon({
  name,
  size = 16,
  ...rest
}: { readonly name: IconName; readonly size?: number } & SVGProps<SVGSVGElement>) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      {...rest}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <Group component="span" gap={8} fz={15} fw={650} lts="-0.01em" wrap="nowrap">
      <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
        <g fill="var(--lw-accent)">
          <rect x="0" y="10" width="3" height="7" rx="1" />
          <rect x="5" y="8" width="3" height="9" rx="1" />
          <rect x="10" y="9" width="3" height="8" rx="1" />
          <rect x="15" y="1" width="3" height="16" rx="1" />
        </g>
      </svg>
      <span>Longwatch</span>
    </Group>
  );
}
