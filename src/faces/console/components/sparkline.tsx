interface Props {
  readonly values: readonly number[];
  readonly width?: number;
  readonly height?: number;
  /** A description of the line for people who do not see it. */
  readonly label: string;
  readonly colour?: string;
}

/** A small bar per value. The highest bar is full; a bar of a value above 0 is never invisible. */
export function Sparkline({ values, width = 96, height = 18, label, colour = "var(--lw-accent)" }: Props) {
  const most = Math.max(...values, 1);
  const step = width / Math.max(values.length, 1);
  return (
    <svg width={width} height={height} role="img" aria-label={label} style={{ display: "block" }}>
      <line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} stroke="var(--lw-line)" />
      {values.map((value, index) => {
        const tall = value <= 0 ? 0 : Math.max(1.5, (value / most) * (height - 1));
        const key = index;
        return (
          <rect
            key={key}
            x={index * step}
            y={height - tall}
            width={Math.max(step - 0.6, 0.8)}
            height={tall}
            fill={colour}
          />
        );
      })}
    </svg>
  );
}
