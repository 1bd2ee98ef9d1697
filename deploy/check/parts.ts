import { alertRules } from './alerts.ts';
import type { Part } from './check.ts';
import { compose } from './compose.ts';
import { image } from './image.ts';
import { keycloak } from './keycloak.ts';
import { kubernetes, pods } from './kubernetes.ts';
import { outages } from './outages.ts';
import { restore } from './restore.ts';
import { scaling } from './scaling.ts';
import { testcontainers } from './testcontainers.ts';
import { traces } from './traces.ts';

/** The parts of `npm run check:deploy`, in order. */
export const parts: Part[] = [
  image,
  compose,
  testcontainers,
  alertRules,
  traces,
  keycloak,
  scaling,
  outages,
  restore,
  kubernetes,
  pods,
];
