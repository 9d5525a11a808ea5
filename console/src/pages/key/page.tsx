import { Box, Button, Group, Paper, PasswordInput, SimpleGrid, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { ColorSchemeButton } from '../../app/color-scheme-button';
import { Logo } from '../../app/logo';
import { SERIES_COLORS } from '../../app/theme';
import { ChartPanel } from '../../charts/chart-panel';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { Section } from '../../display/section';
import { Compact, Money, RelativeTime } from '../../figures/figure';
import { percent } from '../../figures/numbers';
import { dayOfYear } from '../../figures/times';
import { type Limit, limitTitle } from '../../limits/limit';
import { LimitList } from '../../limits/limit-list';
import { METRICS, perInterval } from '../../usage/metrics';
import { unknownCost } from '../../usage/unknown-cost';
import { type OwnKey, type OwnUsage, readOwnKey } from './own-key';

/** For holders of a gateway key: what it may do and what it used. The key is kept in this page's memory only. */
export default function Key() {
  const [secret, setSecret] = useState('');
  const read = useMutation({ mutationFn: readOwnKey, gcTime: 0, onSuccess: () => setSecret('') });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (secret.trim() !== '') read.mutate(secret.trim());
  };
  const found = read.data;
  return (
    <Box component="main" maw={960} mx="auto" p={{ base: 'sm', sm: 'lg' }}>
      <Group justify="space-between" mb="lg">
        <Logo />
        <ColorSchemeButton />
      </Group>
      <PageHeader
        title="Your key"
        description="What your gateway key may do, its limits, and what it has used. The key is sent to this gateway only, and is not stored."
      />
      <Stack gap="md">
        <Paper withBorder p="md">
          <form onSubmit={submit}>
            <Group gap="xs" align="flex-end">
              <PasswordInput
                label={found === undefined ? 'Gateway key' : 'Another gateway key'}
                placeholder="ptn_…"
                value={secret}
                onChange={(event) => setSecret(event.currentTarget.value)}
                autoComplete="off"
                spellCheck={false}
                flex="1 1 240px"
                visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the key', tabIndex: 0 }}
              />
              <Button type="submit" loading={read.isPending} disabled={secret.trim() === ''}>
                Show
              </Button>
            </Group>
          </form>
        </Paper>
        <ErrorAlert
          error={read.error}
          title="The key could not be shown"
          wrongSecret="No key has this secret, or it was revoked or has expired. Check that it was copied whole."
        />
        {found !== undefined && <OwnData ownKey={found.key} usage={found.usage} />}
        <Text size="sm" c="dimmed">
          Do you have an admin token?{' '}
          <PageLink to="/" underline="always">
            Sign in
          </PageLink>
        </Text>
      </Stack>
    </Box>
  );
}

function OwnData({ ownKey, usage }: { ownKey: OwnKey; usage: OwnUsage }) {
  const limits = ownKey.limits.map((limit, index): Limit => ({
    ...limit,
    id: String(index),
    group: null,
    providers: null,
    models: null,
    team: ownKey.team,
    key: limit.scope.startsWith('key') ? ownKey.name : null,
    owner_id: '',
    subject: null,
    refused: 0,
  }));
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <Section title={`${ownKey.team} / ${ownKey.name}`}>
          <Facts
            facts={[
              ['Secret begins with', ownKey.prefix],
              ['Expires', <RelativeTime at={ownKey.expires_at} empty="never" />],
              [
                'This secret ends',
                ownKey.secret_expires_at === null ? undefined : (
                  <RelativeTime at={ownKey.secret_expires_at} />
                ),
              ],
              ['Providers', ownKey.providers?.join(', ') ?? 'all'],
              ['Endpoints', ownKey.endpoints === 'all' ? 'all' : 'inference only'],
              ['Models', listed(ownKey.models)],
              ['Models of the team', ownKey.team_models === null ? undefined : listed(ownKey.team_models)],
            ]}
          />
        </Section>
        <Section title="Limits and budgets">
          {limits.length + ownKey.shared_limits.length === 0 ? (
            <Text size="sm">None: calls are unlimited.</Text>
          ) : (
            <LimitList limits={limits} owners />
          )}
          {ownKey.shared_limits.length > 0 && <SharedLimits limits={ownKey.shared_limits} />}
        </Section>
        <Sums title="Today" sums={usage.today} />
        <Sums title="This month" sums={usage.this_month} />
      </SimpleGrid>
      <Section title="Cost by day">
        <Text size="xs" c="dimmed" mb="xs">
          Days in {usage.time_zone}. Complete up to <RelativeTime at={usage.as_of} />.
        </Text>
        {usage.days.length === 0 ? <Text size="sm">No calls this month.</Text> : <Days usage={usage} />}
      </Section>
    </>
  );
}

/** Of the group and of all calls. How much others may use, and have used, is not for the holder of a key. */
function SharedLimits({ limits }: { limits: OwnKey['shared_limits'] }) {
  return (
    <Stack gap="xs" mt="sm">
      <Text size="sm" fw={600} component="h3">
        Shared with others
      </Text>
      <Stack gap="xs" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
        {limits.map((limit, i) => (
          <li key={i}>
            <Text size="sm">
              {limit.scope.startsWith('group') ? 'Group of the team' : 'All calls'}: {limitTitle(limit)}
            </Text>
            <Text size="xs" c={limit.blocking ? 'var(--postern-bad)' : 'dimmed'}>
              {limit.blocking ? 'Rejects calls' : 'Admits calls'}
              {limit.resets_at !== null && (
                <>
                  , resets <RelativeTime at={limit.resets_at} />
                </>
              )}
            </Text>
          </li>
        ))}
      </Stack>
    </Stack>
  );
}

function listed(models: readonly string[] | null): string {
  return models === null ? 'all' : models.length === 0 ? 'none' : models.join(', ');
}

function Sums({ title, sums }: { title: string; sums: OwnUsage['today'] }) {
  return (
    <Section title={title}>
      <Facts
        facts={[
          ['Cost', sums.calls === 0 ? <Money usd="0" /> : <Money usd={sums.cost_usd} />],
          ['Not in the cost', unknownCost(sums) ?? undefined],
          ['Calls', <Compact value={sums.calls} />],
          ['Tokens', <Compact value={sums.total_tokens} />],
          ['Error rate', percent(sums.errors, sums.calls)],
          [
            'Calls without a price',
            sums.unpriced_calls === 0 ? undefined : <Compact value={sums.unpriced_calls} />,
          ],
        ]}
      />
    </Section>
  );
}

function Days({ usage }: { usage: OwnUsage }) {
  const cost = METRICS[0]!;
  const days = [...usage.days].reverse();
  return (
    <ChartPanel
      label="Cost by day"
      periods={days.map(({ day }) => ({
        start: new Date(day),
        end: new Date(day),
        label: day,
        tick: dayOfYear(new Date(day), 'UTC'),
      }))}
      series={[
        {
          id: 'cost',
          label: 'Cost',
          color: SERIES_COLORS[0],
          values: days.map((day) => (cost.isKnown?.(day) === false ? null : cost.of(day))),
        },
      ]}
      format={cost.format}
      unit={perInterval(cost.unit, 'day')}
      formatAxis={cost.formatAxis}
      unknown={cost.unknown}
      height={180}
    />
  );
}
