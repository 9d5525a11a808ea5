import type { ReactNode } from 'react';

/** Line icons of 24 by 24 units. They are decoration: the text beside them, or the button's label, says what they mean. */
function icon(path: ReactNode) {
  return function Icon({ size = 18 }: { size?: number }) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={1.7}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
        style={{ flexShrink: 0 }}
      >
        {path}
      </svg>
    );
  };
}

export const OverviewIcon = icon(<path d="M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z" />);
export const UsageIcon = icon(<path d="M4 20V10M10 20V4M16 20v-7M21 20H3" />);
export const RequestsIcon = icon(<path d="M4 6h16M4 12h16M4 18h10" />);
export const KeysIcon = icon(
  <path d="M15 9a4 4 0 1 1-3.5 5.9L9 17.400H6v3H3v-3.500l6.200-6.200A4 4 0 0 1 15 9zM15.500 12.500h.01" />,
);
export const TeamsIcon = icon(
  <path d="M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM2.500 20a6.500 6.500 0 0 1 13 0M16 4.300a3.500 3.500 0 0 1 0 6.400M18.500 14.200A6.500 6.500 0 0 1 21.500 20" />,
);
export const LimitsIcon = icon(<path d="M12 14l4-5M4.500 18a9 9 0 1 1 15 0z" />);
export const ProvidersIcon = icon(
  <path d="M4 5h16v5H4zM4 14h16v5H4zM8 7.500h.01M8 16.500h.01M12 7.500h5M12 16.500h5" />,
);
export const JobsIcon = icon(<path d="M12 3a9 9 0 1 0 9 9M12 7v5l3.500 2M16 3.900l4 3.600" />);
export const PricesIcon = icon(
  <path d="M12 3v18M16.500 7.500C15.500 6 14 5.500 12 5.500c-2.500 0-4.500 1.200-4.500 3.200 0 4.300 9.500 2 9.500 6.300 0 2.200-2.200 3.500-5 3.500-2.300 0-4.200-.8-5-2.500" />,
);
export const AccessIcon = icon(<path d="M12 3l7 3v5c0 4.500-3 8-7 10-4-2-7-5.500-7-10V6zM9 12l2 2 4-4" />);
export const PeopleIcon = icon(
  <path d="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.500 20.500a7.500 7.500 0 0 1 15 0" />,
);
export const TrustsIcon = icon(
  <path d="M8.500 14a4 4 0 0 1 0-5.600l2.400-2.400a4 4 0 0 1 5.600 5.600l-1 1M15.500 10a4 4 0 0 1 0 5.600l-2.400 2.400a4 4 0 0 1-5.600-5.600l1-1" />,
);
export const PoliciesIcon = icon(<path d="M4 5h16l-6 7.500V20l-4-2.500v-5z" />);
export const WebhooksIcon = icon(<path d="M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21.500h4" />);
export const SinksIcon = icon(
  <path d="M4 6c0-1.700 3.600-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3zM4 6v12c0 1.700 3.600 3 8 3s8-1.300 8-3V6M4 12c0 1.700 3.600 3 8 3s8-1.300 8-3" />,
);
export const AuditIcon = icon(<path d="M6 3h9l4 4v14H6zM14 3v5h5M9 12h7M9 16h7" />);
export const SystemIcon = icon(
  <path d="M5 5h14v14H5zM9 9h6v6H9zM9 2v3M15 2v3M9 19v3M15 19v3M2 9h3M2 15h3M19 9h3M19 15h3" />,
);
export const CopyIcon = icon(<path d="M9 9h11v11H9zM5 15H4V4h11v1" />);
export const CheckIcon = icon(<path d="M5 12.500l4.500 4.500L19 7" />);
export const SunIcon = icon(
  <path d="M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M5 19l1.400-1.400M17.600 6.400L19 5" />,
);
export const MoonIcon = icon(<path d="M20 14.500A8.500 8.500 0 1 1 9.500 4a7 7 0 0 0 10.500 10.500z" />);
export const CloseIcon = icon(<path d="M6 6l12 12M18 6L6 18" />);
export const ChevronIcon = icon(<path d="M9 6l6 6-6 6" />);
export const DownIcon = icon(<path d="M6 9l6 6 6-6" />);
export const WarningIcon = icon(<path d="M12 3.500L22 20.500H2zM12 10v5M12 17.800h.01" />);
export const SignOutIcon = icon(<path d="M14 4H5v16h9M10 12h11M17.500 8.500L21 12l-3.500 3.500" />);
export const SearchIcon = icon(
  <path d="M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM15.200 15.200L20.500 20.500" />,
);
export const DownloadIcon = icon(<path d="M12 4v11M7.500 11L12 15.500 16.500 11M4 20h16" />);
