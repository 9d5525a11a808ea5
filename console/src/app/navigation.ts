import {
  AccessIcon,
  AuditIcon,
  JobsIcon,
  KeysIcon,
  LimitsIcon,
  OverviewIcon,
  PricesIcon,
  ProvidersIcon,
  RequestsIcon,
  SinksIcon,
  SystemIcon,
  TeamsIcon,
  UsageIcon,
  WebhooksIcon,
} from '../display/icons';

/** The pages in the order of the navigation. `all`: not only for those who see the data of all teams. */
export const PAGES = [
  { to: '/', label: 'Overview', Icon: OverviewIcon, all: true },
  { to: '/usage', label: 'Usage', Icon: UsageIcon, all: true },
  { to: '/requests', label: 'Requests', Icon: RequestsIcon, all: true },
  { to: '/keys', label: 'Keys', Icon: KeysIcon, all: true },
  { to: '/teams', label: 'Teams', Icon: TeamsIcon, all: true },
  { to: '/limits', label: 'Limits', Icon: LimitsIcon, all: true },
  { to: '/providers', label: 'Providers and routes', Icon: ProvidersIcon, all: false },
  { to: '/jobs', label: 'Jobs', Icon: JobsIcon, all: false },
  { to: '/prices', label: 'Prices', Icon: PricesIcon, all: false },
  { to: '/access', label: 'Access', Icon: AccessIcon, all: false },
  { to: '/webhooks', label: 'Webhooks', Icon: WebhooksIcon, all: false },
  { to: '/sinks', label: 'Sinks', Icon: SinksIcon, all: false },
  { to: '/audit', label: 'Audit', Icon: AuditIcon, all: false },
  { to: '/system', label: 'System', Icon: SystemIcon, all: false },
] as const;
