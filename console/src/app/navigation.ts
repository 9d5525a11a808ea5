import {
  AuditIcon,
  KeysIcon,
  LimitsIcon,
  OverviewIcon,
  PricesIcon,
  ProvidersIcon,
  RequestsIcon,
  SystemIcon,
  TeamsIcon,
  UsageIcon,
} from '../display/icons';

/** The pages in the order of the navigation. */
export const PAGES = [
  { to: '/', label: 'Overview', Icon: OverviewIcon },
  { to: '/usage', label: 'Usage', Icon: UsageIcon },
  { to: '/requests', label: 'Requests', Icon: RequestsIcon },
  { to: '/keys', label: 'Keys', Icon: KeysIcon },
  { to: '/teams', label: 'Teams', Icon: TeamsIcon },
  { to: '/limits', label: 'Limits', Icon: LimitsIcon },
  { to: '/providers', label: 'Providers and routes', Icon: ProvidersIcon },
  { to: '/prices', label: 'Prices', Icon: PricesIcon },
  { to: '/audit', label: 'Audit', Icon: AuditIcon },
  { to: '/system', label: 'System', Icon: SystemIcon },
] as const;
