import { Group } from "@mantine/core";

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
