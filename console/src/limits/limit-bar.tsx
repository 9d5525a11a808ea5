import classes from './limit-bar.module.css';
import { type Limit, limitAmount, limitOwner, limitShares, limitTitle, usedPercent } from './limit';

/** What is used (solid) and held by gateways for calls (hatched), of the whole amount. */
export function LimitBar({ limit }: { limit: Limit }) {
  const { used, held } = limitShares(limit);
  const shown = Math.min(1, used);
  return (
    <div
      className={classes.track}
      role="meter"
      aria-label={`${limitOwner(limit)}: ${limitTitle(limit)}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(shown * 100)}
      aria-valuetext={`${limitAmount(limit, limit.used)} used, ${limitAmount(limit, limit.left)} left`}
      data-state={limit.state}
      title={`${usedPercent(limit)} used${held > 0 ? `, ${limitAmount(limit, limit.held)} held for calls` : ''}`}
    >
      <span className={classes.used} style={{ width: `${shown * 100}%` }} />
      <span className={classes.held} style={{ width: `${Math.min(1 - shown, held) * 100}%` }} />
    </div>
  );
}
