import { Box, Center, ColorSwatch, Group, ScrollArea, Skeleton, Switch, Table, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { partOf } from '../app/lazy-part';
import classes from './chart-panel.module.css';
import type { ChartData, ChartPeriod } from './series';

const StackedBars = partOf(
  'stacked-bars',
  () => import('./stacked-bars'),
  ({ height }) => <Skeleton height={height} />,
);

interface Props extends ChartData {
  height?: number;
  onZoom?: (from: Date, to: Date) => void;
  onPick?: (seriesId: string, period: ChartPeriod) => void;
  /** Controls on the left, above the chart. */
  children?: ReactNode;
  loading?: boolean;
  /** Said instead of the chart if no value is known but those of periods without calls. */
  unknown?: string;
  /** Shown instead of the chart when there is nothing to draw. */
  empty?: ReactNode;
}

/** A chart with its legend, and the same figures as a table behind a switch. */
export function ChartPanel({
  children,
  empty,
  unknown,
  loading = false,
  height = 260,
  onZoom,
  onPick,
  ...chart
}: Props) {
  const [asTable, setAsTable] = useState(false);
  const isUnknown = unknown !== undefined && hasNoKnownValue(chart);
  const legend = !asTable && empty === undefined && !isUnknown && chart.series.length > 1;
  return (
    <div>
      {children !== undefined && (
        <Group gap="xs" mb="sm">
          {children}
        </Group>
      )}
      {loading ? (
        <Skeleton height={height} />
      ) : empty !== undefined ? (
        empty
      ) : asTable ? (
        <PeriodTable {...chart} height={height} />
      ) : isUnknown ? (
        <Center h={height} px="md">
          <Text size="sm" c="dimmed" ta="center" maw={480}>
            {unknown}
          </Text>
        </Center>
      ) : (
        <>
          <Text size="xs" c="dimmed">
            {chart.unit}
          </Text>
          <StackedBars {...chart} height={height} onZoom={onZoom} onPick={onPick} />
        </>
      )}
      <Group
        justify="space-between"
        align="flex-start"
        gap="sm"
        mt="xs"
        wrap="nowrap"
        className={classes.footer}
      >
        <div style={{ minWidth: 0 }}>
          {legend && (
            <Group component="ul" gap="md" p={0} m={0} className={classes.legend} aria-label="Legend">
              {chart.series.map(({ id, label, color }) => (
                <Group key={id} component="li" gap={6} wrap="nowrap" maw="100%">
                  <ColorSwatch
                    size={10}
                    color={`var(--mantine-color-${color.replace('.', '-')})`}
                    withShadow={false}
                  />
                  <Text size="xs" truncate="end">
                    {label}
                  </Text>
                </Group>
              ))}
            </Group>
          )}
          {onZoom !== undefined && !asTable && empty === undefined && !isUnknown && (
            <Text size="xs" c="dimmed" mt={legend ? 4 : 0} visibleFrom="sm">
              Drag over the chart to zoom in.
            </Text>
          )}
        </div>
        {empty === undefined && (
          <Switch
            label="Show as table"
            size="xs"
            className={classes.switch}
            checked={asTable}
            onChange={(event) => setAsTable(event.currentTarget.checked)}
          />
        )}
      </Group>
    </div>
  );
}

/** An axis of zeros would say that they are known. */
function hasNoKnownValue({ series }: ChartData): boolean {
  const values = series.flatMap((one) => one.values);
  return values.includes(null) && values.every((value) => value === null || value === 0);
}

function PeriodTable({ label, periods, series, format, height }: ChartData & { height: number }) {
  return (
    <ScrollArea.Autosize
      mah={Math.max(height, 320)}
      type="auto"
      viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': label }}
    >
      <Box miw={Math.min(900, 160 + series.length * 110)}>
        <Table stickyHeader aria-label={label}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Period</Table.Th>
              {series.map(({ id, label: name }) => (
                <Table.Th key={id} ta="right">
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {periods.map((period, index) => (
              <Table.Tr key={period.start.getTime()}>
                <Table.Th scope="row" fw={400}>
                  {period.label}
                </Table.Th>
                {series.map(({ id, values }) => (
                  <Table.Td key={id} ta="right">
                    {values[index] === null ? '–' : format(values[index] ?? 0)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Box>
    </ScrollArea.Autosize>
  );
}
