import { Button, Center, Group, Paper, Stack, Text } from '@mantine/core';
import { api } from '../../api/client';
import { QUERY_VALUES } from '../../api/query-values';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { ExactTime } from '../../figures/figure';
import { type FilterField, FilterForm } from '../../filters/filter-form';
import { NoMatch } from '../../filters/no-match';
import { usePages } from '../../table/use-pages';
import { useTimeRange } from '../../url/time-range';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useUrlState } from '../../url/url-state';
import { type AuditEntry, diffOf } from './diff';
import classes from './diff.module.css';
import { DiffList } from './diff-list';
import { isLinked, SubjectLink } from './subject-link';

const FILTERS: readonly FilterField[] = [
  {
    name: 'action',
    label: 'Action',
    any: 'Any action',
    choices: QUERY_VALUES.listAudit.action,
    flex: '1 1 120px',
    maw: 160,
  },
  {
    name: 'subject_type',
    label: 'Type of object',
    any: 'Any object',
    choices: QUERY_VALUES.listAudit.subject_type,
    flex: '1 1 120px',
    maw: 160,
  },
  { name: 'subject_name', label: 'Name of the object', placeholder: 'Name', flex: '1 1 140px', maw: 220 },
  { name: 'actor', label: 'Who', placeholder: 'Who, such as admin-token', flex: '1 1 180px', maw: 240 },
];

export default function Audit() {
  const [{ actor, action, subject_type, subject_name, subject_id }, setUrl] = useUrlState();
  const range = useTimeRange('30d');
  const filter = { actor, action, subject_type, subject_name, subject_id };
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const query = { ...filter, ...range.query };
  const entries = usePages<AuditEntry>(['audit', query], (cursor, signal) =>
    api.get('/admin/v1/audit', { query: { ...query, cursor, limit: 50 }, signal }),
  );
  const { rows } = entries;
  return (
    <>
      <PageHeader title="Audit" description="Who changed what, newest first.">
        <TimeRangePicker range={range} />
      </PageHeader>
      <FilterForm fields={FILTERS} />
      {subject_id !== undefined && (
        <Group gap="xs" mb="sm">
          <Text size="sm">Changes of one object: {rows?.[0]?.subject_name ?? subject_id}</Text>
          <Button size="compact-sm" variant="subtle" onClick={() => setUrl({ subject_id: undefined })}>
            Show all
          </Button>
        </Group>
      )}
      <ErrorAlert error={entries.error} retry={() => void entries.refetch()} />
      {rows === undefined ? (
        entries.error === null && <LoadingRows height={64} />
      ) : rows.length === 0 ? (
        isFiltered ? (
          <NoMatch
            title="No change matches"
            all="changes"
            filters={[...FILTERS.map(({ name }) => name), 'subject_id']}
          >
            Names are compared whole, as they were at the time.
          </NoMatch>
        ) : (
          <EmptyState title={`No changes ${range.phrase}`}>Choose a longer range.</EmptyState>
        )
      ) : (
        <Stack component="ol" gap={6} p={0} m={0} style={{ listStyle: 'none' }} aria-label="Changes">
          {rows.map((entry) => (
            <Entry key={entry.id} entry={entry} />
          ))}
        </Stack>
      )}
      {entries.hasNextPage && (
        <Center mt="md">
          <Button
            variant="default"
            onClick={() => void entries.fetchNextPage()}
            loading={entries.isFetchingNextPage}
          >
            Load more
          </Button>
        </Center>
      )}
    </>
  );
}

/** More values are shown only when they are asked for. */
const MAX_SHOWN = 2;

/** One line, and what changed below it. */
function Entry({ entry }: { entry: AuditEntry }) {
  const { at, actor, client_ip, action, subject_type, subject_name } = entry;
  const lines = diffOf(entry);
  const isLong = lines.length > MAX_SHOWN;
  const line = (
    <Group
      component="span"
      justify="space-between"
      gap="xs"
      align="baseline"
      style={{ flex: 1, minWidth: 0 }}
    >
      <Text span size="sm" style={{ overflowWrap: 'anywhere', minWidth: 0 }}>
        <b>{actor}</b> {action.replaceAll('_', ' ')} {subject_type}{' '}
        <b>{isLong ? subject_name : <SubjectLink entry={entry}>{subject_name}</SubjectLink>}</b>
        {isLong && (
          <Text span size="xs" c="var(--mantine-color-anchor)" ml={8}>
            {lines.length} values
          </Text>
        )}
      </Text>
      <Text size="xs" c="dimmed" component="span">
        {client_ip === null ? '' : `${client_ip} · `}
        <ExactTime at={at} seconds />
      </Text>
    </Group>
  );
  return (
    <Paper withBorder px="md" py={6} component="li">
      {isLong ? (
        <details>
          <summary className={classes.summary}>{line}</summary>
          {isLinked(entry) && (
            <Text size="xs" mt={4} style={{ overflowWrap: 'anywhere' }}>
              <SubjectLink entry={entry}>
                Open the {subject_type} {subject_name}
              </SubjectLink>
            </Text>
          )}
          <DiffList lines={lines} />
        </details>
      ) : (
        <>
          {line}
          {lines.length > 0 && <DiffList lines={lines} />}
        </>
      )}
    </Paper>
  );
}
