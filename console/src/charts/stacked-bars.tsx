import { BarChart } from '@mantine/charts';
import '@mantine/charts/styles.css';
import { ColorSwatch, Group, Paper, Text } from '@mantine/core';
import { PressArea, type PressHandlers } from './press-area';
import type { ChartData } from './series';
import classes from './stacked-bars.module.css';

interface Props extends ChartData, PressHandlers {
  height: number;
}

/** Lower charts have fewer lines, in pixels. */
const LOW = 200;

/** Widths of the axis, in pixels: for labels such as "$0.015", and such as "$0.000015". */
const AXIS = 62;
const WIDE_AXIS = 84;

/** Fractions of a cent have long labels. */
function hasLongLabels(series: ChartData['series'], formatAxis: ChartData['formatAxis']): boolean {
  const periods = series[0]?.values ?? [];
  const top = Math.max(
    0,
    ...periods.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0)),
  );
  return [top, top / 4].some((value) => formatAxis(value).length > 6);
}

/** Stacked bars over time. Loaded only where a chart is shown. */
export default function StackedBars({
  periods,
  series,
  format,
  formatAxis,
  height,
  onZoom,
  onPick,
  label,
}: Props) {
  // Values are found by index: a name such as "a.b" would be read as a path by the chart library.
  const data = periods.map((_, index) => ({
    period: String(index),
    ...Object.fromEntries(series.map(({ values }, number) => [`s${number}`, values[index] ?? 0])),
  }));
  const isZero = series.every(({ values }) => values.every((value) => value === 0));
  return (
    <div role="img" aria-label={label} className={classes.chart}>
      <BarChart
        h={height}
        data={data}
        dataKey="period"
        type="stacked"
        series={series.map(({ label: name, color }, index) => ({ name: `s${index}`, label: name, color }))}
        valueFormatter={format}
        withLegend={false}
        tickLine="none"
        gridAxis="x"
        maxBarWidth={48}
        xAxisProps={{
          tickFormatter: (index: string) => periods[Number(index)]?.tick ?? '',
          minTickGap: 24,
          interval: 'equidistantPreserveStart',
        }}
        yAxisProps={{
          tickFormatter: formatAxis,
          width: hasLongLabels(series, formatAxis) ? WIDE_AXIS : AXIS,
          allowDecimals: true,
          interval: 0,
          // Of nothing there would be ticks of billionths.
          ...(isZero && { domain: [0, 1], ticks: [0] }),
          tickCount: height < LOW ? 3 : 5,
        }}
        // A line between the parts of a bar, so that they can be told apart without colour.
        barProps={{
          isAnimationActive: false,
          stroke: 'var(--mantine-color-body)',
          strokeWidth: 1,
          pointerEvents: 'none',
        }}
        barChartProps={{ margin: { top: 8, right: 4 }, accessibilityLayer: false }}
        tooltipProps={{
          isAnimationActive: false,
          content: ({ active, label: index }) =>
            active === true ? (
              <PeriodTooltip index={Number(index)} periods={periods} series={series} format={format} />
            ) : null,
        }}
      >
        <PressArea periods={periods} series={series} onZoom={onZoom} onPick={onPick} />
      </BarChart>
    </div>
  );
}

function PeriodTooltip({
  index,
  periods,
  series,
  format,
}: Pick<Props, 'periods' | 'series' | 'format'> & { index: number }) {
  const period = periods[index];
  if (period === undefined) return null;
  const rows = series
    .map(({ id, label, color, values }) => ({ id, label, color, value: values[index] ?? 0 }))
    .filter(({ value }) => value !== 0);
  const total = rows.reduce((sum, { value }) => sum + value, 0);
  return (
    <Paper withBorder shadow="md" px="sm" py="xs" className={classes.tooltip}>
      <Text size="sm" fw={600} mb={4}>
        {period.label}
      </Text>
      {rows.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing
        </Text>
      )}
      {[...rows].reverse().map(({ id, label, color, value }) => (
        <Group key={id} justify="space-between" gap="md" wrap="nowrap">
          <Group gap={6} wrap="nowrap" miw={0}>
            <ColorSwatch
              size={10}
              color={`var(--mantine-color-${color.replace('.', '-')})`}
              withShadow={false}
            />
            <Text size="sm" truncate="end" maw={180}>
              {label}
            </Text>
          </Group>
          <Text size="sm" ff="monospace">
            {format(value)}
          </Text>
        </Group>
      ))}
      {rows.length > 1 && (
        <Group justify="space-between" gap="md" mt={4}>
          <Text size="sm" fw={600}>
            Total
          </Text>
          <Text size="sm" ff="monospace" fw={600}>
            {format(total)}
          </Text>
        </Group>
      )}
    </Paper>
  );
}
