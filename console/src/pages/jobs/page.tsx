import { Button, SegmentedControl, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';
import { QUERY_VALUES } from '../../api/query-values';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { FullName } from '../../display/full-name';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { StatusBadge, type Tone } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { useUrlState } from '../../url/url-state';

type Job = ResponseOf<'/admin/v1/jobs', 'get'>['data'][number];

const REFRESH_MS = 10_000;
const STATES = QUERY_VALUES.listJobs.state;
const TONES: Record<Job['state'], Tone> = { open: 'neutral', settled: 'good', unknown: 'warning' };
const KINDS: Record<Job['kind'], string> = {
  batch: 'Batch',
  response: 'Background response',
  video: 'Video',
};

/** Why the last check did not settle a job, in words; the documentation has the codes. */
const PROBLEMS: Readonly<Record<string, string>> = {
  provider_unavailable: 'The provider is disabled or removed, or its secret cannot be opened',
  unauthorized: 'The provider rejects the secret',
  not_found: 'The provider does not know the job',
  rate_limited: 'The provider responded with 429',
  provider_error: 'The provider failed',
  unexpected_status: 'The provider responded with an unexpected status',
  timeout: 'The provider did not respond in time',
  unreachable: 'The provider could not be reached',
  unreadable: 'The response does not describe the job',
  incomplete: 'The file of results is incomplete',
  unreadable_secret: 'The job was stored with another MASTER_KEY',
  not_settled: 'Postgres failed while the job was settled',
  no_usage: 'The job ended without usage',
  too_large: 'The results are too large to be read',
  expired: 'The job did not end within 8 days',
  row_gone: 'The row of its call was deleted',
};

function Problem({ code }: { code: string | null }) {
  if (code === null) return <>none</>;
  return <span title={code}>{PROBLEMS[code] ?? code}</span>;
}

/** Batches, background responses and videos, which providers go on with after the call. */
export default function Jobs() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const client = useQueryClient();
  const state = STATES.find((one) => one === url.jobs);
  const jobs = usePages<Job>(
    ['jobs', state],
    (cursor, signal) =>
      api.get('/admin/v1/jobs', { query: { cursor, limit: 50, ...(state && { state }) } as never, signal }),
    { refetchInterval: REFRESH_MS },
  );
  const check = useMutation({
    mutationFn: ({ id }: Job) => api.post('/admin/v1/jobs/{id}/check', { path: { id }, body: {} }),
    onSettled: () => client.invalidateQueries({ queryKey: ['jobs'] }),
  });
  const columns: Column<Job>[] = [
    {
      id: 'job',
      header: 'Job',
      cell: ({ id, kind, provider, model }) => (
        <>
          <PageLink to="/requests" search={{ id }} size="sm">
            {KINDS[kind]}
          </PageLink>
          <Text c="dimmed" size="xs" component="span" display="block">
            {model === null ? provider : `${provider} · ${model}`}
          </Text>
        </>
      ),
    },
    {
      id: 'key',
      header: 'Team / key',
      oneLine: true,
      cell: ({ team, key }) => (
        <span className="truncated">
          {key === null ? (team ?? '–') : <FullName team={team ?? '?'} name={key} />}
        </span>
      ),
    },
    {
      id: 'state',
      header: 'State',
      cell: (job) => <StatusBadge tone={TONES[job.state]}>{job.state}</StatusBadge>,
    },
    { id: 'problem', header: 'Problem', cell: ({ problem }) => <Problem code={problem} /> },
    {
      id: 'started',
      header: 'Started',
      oneLine: true,
      cell: ({ started_at }) => <RelativeTime at={started_at} />,
    },
    {
      id: 'next',
      header: 'Next check',
      oneLine: true,
      cell: ({ next_check_at }) => (next_check_at === null ? 'none' : <RelativeTime at={next_check_at} />),
    },
  ];
  if (mayChange)
    columns.push({
      id: 'check',
      header: 'Action',
      actions: true,
      cell: (job) =>
        job.state !== 'settled' && (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Check now: ${job.id}`}
            loading={check.isPending && check.variables.id === job.id}
            onClick={() => check.mutate(job)}
          >
            Check now
          </Button>
        ),
    });
  return (
    <>
      <PageHeader
        title="Jobs"
        description="Batches, background responses and videos: what they cost is known after their call."
      />
      <SegmentedControl
        size="xs"
        mb="md"
        aria-label="State"
        value={state ?? ''}
        onChange={(value) => setUrl({ jobs: value })}
        data={[
          { value: '', label: 'All' },
          ...STATES.map((value) => ({ value, label: value[0]!.toUpperCase() + value.slice(1) })),
        ]}
      />
      <ErrorAlert error={check.error} />
      <DataTable
        label="Jobs"
        columns={columns}
        rows={jobs.rows}
        rowId={({ id }) => id}
        error={jobs.error}
        retry={() => void jobs.refetch()}
        stale={jobs.isPlaceholderData}
        hasMore={jobs.hasNextPage}
        loadMore={() => void jobs.fetchNextPage()}
        loadingMore={jobs.isFetchingNextPage}
        empty={
          <EmptyState title={state === undefined ? 'There are no jobs' : `No job is ${state}`}>
            A call that creates a batch, a background response or a video is followed here until its cost is
            known.
          </EmptyState>
        }
      />
    </>
  );
}
