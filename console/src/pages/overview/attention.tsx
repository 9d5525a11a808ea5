import { Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { ResponseOf } from '../../api/client';
import { attentionQuery } from '../../api/load-all';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { Section } from '../../display/section';
import { StatusBadge, type Tone } from '../../display/status-badge';
import { count } from '../../figures/numbers';
import { shortTime } from '../../figures/times';
import { DAY_MS } from '../../url/calendar';
import { useTimeZone } from '../../url/time-zone';
import classes from './attention.module.css';

type Item = ResponseOf<'/admin/v1/attention', 'get'>['data'][number];
type Name = Item['names'][number];

interface Kind {
  /** Of the badge. */
  label: string;
  one: string;
  many: string;
  /** The list of them. */
  list: (item: Item) => ReactNode;
  /** One of them; absent: it has no page. */
  open?: (name: Name) => ReactNode;
}

const openKey = ({ id, name }: Name) => (
  <PageLink to="/keys" search={{ key: id ?? undefined }} underline="always">
    {name}
  </PageLink>
);
const day = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();

const NO_PROVIDER = 'Add a provider first, or enable one: until then calls get 503.';

const KINDS: Record<Item['kind'], Kind> = {
  provider_missing: {
    label: 'No provider',
    one: NO_PROVIDER,
    many: NO_PROVIDER,
    list: () => <PageLink to="/providers">Add a provider</PageLink>,
  },
  provider_failing: {
    label: 'Failing',
    one: 'provider fails most of its calls',
    many: 'providers fail most of their calls',
    list: ({ names: [first] }) => (
      <PageLink to="/requests" search={{ range: '1h', provider: first?.name, failed: 'true' }}>
        Failed requests to {first?.name}
      </PageLink>
    ),
    open: ({ name }) => (
      <PageLink to="/providers" search={{ open: name }} underline="always">
        {name}
      </PageLink>
    ),
  },
  budget_blocking: {
    label: 'Blocking',
    one: 'budget is spent or rejects calls',
    many: 'budgets are spent or reject calls',
    list: () => <PageLink to="/limits">See limits</PageLink>,
    open: ({ id, name }) => (
      <PageLink to="/limits" search={{ id: id ?? undefined }} underline="always">
        {name}
      </PageLink>
    ),
  },
  system_degraded: {
    label: 'Degraded',
    one: 'part of the gateway does not work as it should',
    many: 'parts of the gateway do not work as they should',
    list: () => <PageLink to="/system">See system</PageLink>,
  },
  transactions_lost: {
    label: 'Lost',
    one: 'time Postgres has lost what it had acknowledged',
    many: 'times Postgres has lost what it had acknowledged',
    list: () => <PageLink to="/system">See what was lost</PageLink>,
  },
  secret_unreadable: {
    label: 'Unreadable',
    one: 'secret was encrypted with another master key',
    many: 'secrets were encrypted with another master key',
    list: () => <PageLink to="/providers">See providers</PageLink>,
  },
  sink_failing: {
    label: 'Failing',
    one: 'sink does not take rows',
    many: 'sinks do not take rows',
    list: () => <PageLink to="/sinks">See sinks</PageLink>,
    open: ({ id, name }) => (
      <PageLink to="/sinks" search={{ open: id ?? undefined }} underline="always">
        {name}
      </PageLink>
    ),
  },
  webhook_failing: {
    label: 'Failing',
    one: 'webhook does not take events',
    many: 'webhooks do not take events',
    list: () => <PageLink to="/webhooks">See webhooks</PageLink>,
    open: ({ id, name }) => (
      <PageLink to="/webhooks" search={{ open: id ?? undefined }} underline="always">
        {name}
      </PageLink>
    ),
  },
  key_expiring: {
    label: 'Expiring',
    one: 'key expires within 7 days',
    many: 'keys expire within 7 days',
    list: () => (
      <PageLink to="/keys" search={{ status: 'active', expires_before: day(7) }}>
        Expiring keys
      </PageLink>
    ),
    open: openKey,
  },
  key_old_secret: {
    label: 'Old secret',
    one: 'rotated key is still used with its old secret, which will stop working',
    many: 'rotated keys are still used with their old secrets, which will stop working',
    list: () => <PageLink to="/keys">See keys</PageLink>,
    open: openKey,
  },
  price_missing: {
    label: 'No price',
    one: 'model was called that has no price',
    many: 'models were called that have no price',
    list: () => <PageLink to="/prices">See prices</PageLink>,
  },
  key_unused: {
    label: 'Unused',
    one: 'key was not used for 90 days',
    many: 'keys were not used for 90 days',
    list: () => (
      <PageLink to="/keys" search={{ status: 'active', unused_since: day(-90) }}>
        Unused keys
      </PageLink>
    ),
    open: openKey,
  },
};

/** So many of a kind stand in its line. */
const NAMED = 5;

const TONES: Record<Item['level'], Tone> = { critical: 'bad', warning: 'warning', info: 'neutral' };

/** What needs somebody now, before all figures; one line if nothing does. */
export function Attention() {
  const attention = useQuery(attentionQuery);
  const { data, error } = attention;
  if (data === undefined)
    return error === null ? (
      <Skeleton height={20} width={160} />
    ) : (
      <ErrorAlert error={error} retry={() => void attention.refetch()} />
    );
  if (data.data.length === 0) {
    return (
      <Group gap="xs" component="section" aria-label="Needs attention">
        <StatusBadge tone="good">All well</StatusBadge>
        <Text size="sm" c="dimmed">
          Nothing needs you now.
        </Text>
      </Group>
    );
  }
  return (
    <Section title="Needs attention">
      <Stack gap="xs" component="ul" className={classes.list}>
        {data.data.map((item) => (
          <Line key={item.kind} item={item} />
        ))}
      </Stack>
    </Section>
  );
}

/** "(since Nov 22, 16:55, 25 of 25 calls failed in the last minutes)" */
function Details({ name: { since, detail } }: { name: Name }) {
  const zone = useTimeZone();
  const more = [since !== null && `since ${shortTime(new Date(since), zone)}`, detail].filter(Boolean);
  if (more.length === 0) return null;
  return (
    <Text span size="sm" c="dimmed">
      {' '}
      ({more.join(', ')})
    </Text>
  );
}

function Line({ item }: { item: Item }) {
  const { label, one, many, list, open } = KINDS[item.kind];
  // Of what has no name there is one.
  const names = item.names.slice(0, NAMED);
  const more = names.length === 0 ? 0 : item.count - names.length;
  return (
    <li className={classes.line}>
      <StatusBadge tone={TONES[item.level]}>{label}</StatusBadge>
      <Text size="sm" className={classes.text}>
        {item.names.length === 0 ? one : `${count(item.count)} ${item.count === 1 ? one : many}: `}
        {names.map((name, index) => (
          <span key={`${name.id} ${name.name}`}>
            {index > 0 && ', '}
            {open === undefined ? name.name : open(name)}
            <Details name={name} />
          </span>
        ))}
        {more > 0 && ` and ${count(more)} more`}
      </Text>
      <Text size="sm" className={classes.link}>
        {list(item)}
      </Text>
    </li>
  );
}
