import { Alert, Anchor, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { api, type ResponseOf } from '../../api/client';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { WarningIcon } from '../../display/icons';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { Section } from '../../display/section';
import { StatusBadge, type Tone } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { bytes, compact, count, duration } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { Losses } from './losses';
import classes from './page.module.css';

type System = ResponseOf<'/admin/v1/system', 'get'>;
const TONES: Record<System['status'], Tone> = { ok: 'good', degraded: 'warning', unavailable: 'bad' };
const REFRESH_MS = 10_000;

export default function SystemPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ['system'],
    queryFn: ({ signal }) => api.get('/admin/v1/system', { signal }),
    refetchInterval: REFRESH_MS,
  });
  return (
    <>
      <PageHeader title="System" description="The state of the gateway and of what it stores." />
      <ErrorAlert error={error} retry={() => void refetch()} />
      {data === undefined ? error === null && <LoadingRows rows={8} /> : <State system={data} />}
    </>
  );
}

function State({ system }: { system: System }) {
  const { journal, log_writer: writer, database } = system;
  return (
    <Stack gap="md">
      {system.reasons.length > 0 && (
        <Alert
          variant="outline"
          color="yellow"
          icon={<WarningIcon />}
          title="Not everything works"
          styles={{ title: { color: 'var(--postern-warning)' } }}
        >
          {system.reasons.map((reason) => (
            <Text key={reason} size="sm" className={classes.reason}>
              {reason}
            </Text>
          ))}
        </Alert>
      )}
      <Losses />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <Section title="Gateway">
          <Facts
            facts={[
              ['Status', <StatusBadge tone={TONES[system.status]}>{system.status}</StatusBadge>],
              [
                'Version',
                <>
                  {system.version}{' '}
                  <Anchor href="/admin/v1/system/changelog" target="_blank" size="sm" underline="always">
                    What is new
                  </Anchor>
                </>,
              ],
              ['Commit', system.commit && <CopyableId id={system.commit} what="commit" short />],
              ['Node.js', system.node],
              ['Started', <RelativeTime at={system.started_at} />],
              [
                'Modules',
                system.modules
                  .map(({ name, version }) => (version === null ? name : `${name} ${version}`))
                  .join(', ') || undefined,
              ],
            ]}
          />
        </Section>
        <Section title="Request log">
          <Facts
            facts={[
              ['Rows written', count(writer.persisted)],
              ['Waiting in memory', count(writer.waiting)],
              ['Waiting in the journal', count(writer.spilled)],
              ['Rejected by Postgres', count(writer.rejected)],
              [
                'Writing fails for',
                writer.failing_seconds === 0 ? undefined : duration(writer.failing_seconds * 1_000),
              ],
              ['Sums complete up to', <RelativeTime at={system.usage_as_of} empty="not yet" />],
            ]}
          />
        </Section>
        <Section title="Journal">
          <Facts
            facts={[
              [
                'State',
                <StatusBadge
                  tone={!journal.accepting ? 'bad' : journal.degraded === null ? 'good' : 'warning'}
                >
                  {!journal.accepting
                    ? 'accepts no calls'
                    : journal.degraded === null
                      ? 'complete'
                      : 'degraded'}
                </StatusBadge>,
              ],
              ['Why', journal.degraded],
              ['Size', bytes(journal.bytes)],
              [
                'Oldest file needed',
                journal.oldest_seconds === 0 ? 'none' : duration(journal.oldest_seconds * 1_000),
              ],
            ]}
          />
        </Section>
        <Section title="Database">
          <Facts
            facts={[
              ['Postgres', database.version],
              ['Size', bytes(database.bytes)],
              ['Days in the log', count(system.partitions.length)],
            ]}
          />
        </Section>
      </SimpleGrid>
      <Processes system={system} />
      <Partitions partitions={system.partitions} />
      <Settings settings={system.settings} />
    </Stack>
  );
}

function Processes({ system }: { system: System }) {
  const { processes } = system;
  return (
    <Section title={processes.length === 1 ? '1 process' : `${processes.length} processes`}>
      <Text size="sm" c="dimmed" mb="xs">
        Connected to this database. The figures above are those of the process that sent this page.
      </Text>
      <Facts
        facts={processes.map(({ address, connected_at }, index) => [
          `${index + 1}. ${address ?? 'this host'}`,
          <>
            connected <RelativeTime at={connected_at} />
          </>,
        ])}
      />
    </Section>
  );
}

type Partition = System['partitions'][number];
const FIRST_SHOWN = 10;

const PARTITION_COLUMNS: Column<Partition>[] = [
  { id: 'name', header: 'Day (UTC)', cell: ({ name }) => dayOf(name), sortBy: ({ name }) => name },
  {
    id: 'rows',
    header: 'Rows, about',
    align: 'right',
    sortBy: ({ rows }) => rows ?? 0,
    cell: ({ rows }) => (rows === null ? '–' : compact(rows)),
  },
  {
    id: 'bytes',
    header: 'Size with indexes',
    align: 'right',
    sortBy: (row) => row.bytes,
    cell: (row) => bytes(row.bytes),
  },
];

function Partitions({ partitions }: { partitions: Partition[] }) {
  const [all, setAll] = useState(false);
  const rows = useMemo(() => {
    // Those of the next days are made in advance and empty.
    const today = new Date().toISOString().slice(0, 10);
    return all ? partitions : partitions.filter(({ name }) => dayOf(name) <= today).slice(0, FIRST_SHOWN);
  }, [all, partitions]);
  const total = partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  return (
    <Section title="Days of the request log">
      <DataTable
        label="Days of the request log"
        columns={PARTITION_COLUMNS}
        rows={rows}
        rowId={({ name }) => name}
        empty={<Text size="sm">There is no partition.</Text>}
        totals={{ name: `All ${partitions.length} days`, bytes: bytes(total) }}
      />
      {!all && partitions.length > FIRST_SHOWN && (
        <Anchor component="button" type="button" size="sm" mt="xs" onClick={() => setAll(true)}>
          Show all {partitions.length} days
        </Anchor>
      )}
    </Section>
  );
}

/** request_log_20260131 → 2026-01-31; other names as they are. */
function dayOf(table: string): string {
  return table.replace(/^request_log_(\d{4})(\d\d)(\d\d)/, '$1-$2-$3');
}

function Settings({ settings }: { settings: System['settings'] }) {
  const changed = settings.filter((setting) => setting.changed);
  const others = settings.filter((setting) => !setting.changed);
  return (
    <Section title="Settings">
      <Text size="sm" c="dimmed" mb="xs">
        Values of secrets are never shown.
      </Text>
      <Facts
        facts={[
          ['Set or generated', changed.length === 0 ? 'none' : <Names of={changed} />],
          ['By default', <Names of={others} />],
        ]}
      />
    </Section>
  );
}

/** Names in columns, with values that are no secrets, in alphabetical order. */
function Names({ of }: { of: System['settings'] }) {
  const sorted = [...of].sort((a, b) => (a.name < b.name ? -1 : 1));
  return (
    <ul className={classes.names}>
      {sorted.map(({ name, value }) => (
        <li key={name}>{value === null ? name : `${name}=${value}`}</li>
      ))}
    </ul>
  );
}
