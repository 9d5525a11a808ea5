/** What a chart shows, independent of the library that draws it. */
export interface ChartSeries {
  /** Unique within the chart. */
  id: string;
  /** What people see; may be any text. */
  label: string;
  /** A Mantine colour such as indigo.7. */
  color: string;
  /** One value for every period, in their order; null: unknown, which is drawn as nothing and shown as a dash. */
  values: readonly (number | null)[];
}

export interface ChartPeriod {
  start: Date;
  /** Exclusive. */
  end: Date;
  label: string;
  /** A shorter label for the axis. */
  tick: string;
}

export interface ChartData {
  /** Names the chart for screen readers: "Cost by team and day". */
  label: string;
  periods: readonly ChartPeriod[];
  series: readonly ChartSeries[];
  /** Text of a value in the tooltip and the table. */
  format: (value: number) => string;
  /** What the axis counts: "USD per day". */
  unit: string;
  /** Short text for the axis. */
  formatAxis: (value: number) => string;
}
