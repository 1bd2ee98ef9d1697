import { type Command, Option } from 'commander';
import { approvalActions, approvalStatus } from '#libs/contracts/approvals.ts';
import type { Approval, Bank } from '../clients/typescript/index.ts';
import { jsonOption, openBank, print, printJson, say, wholeNumber } from './api.ts';

type ListOptions = Parameters<Bank['listApprovals']>[0] & { limit: number; json?: true };

/** `bank approvals list|show|approve|reject`: requests that a second person must approve. */
export function addApprovals(group: Command): void {
  group
    .command('list')
    .description('List them, newest first')
    .addOption(new Option('--status <status>', 'only with this status').choices(approvalStatus.options))
    .addOption(new Option('--action <action>', 'only with this action').choices(approvalActions))
    .option('--limit <number>', 'maximum number', wholeNumber(1, 999_999), 100)
    .addOption(jsonOption())
    .action(async ({ limit, json: asJson, ...filters }: ListOptions) => {
      const approvals = await openBank().listApprovals(filters).toArray(limit);
      if (asJson) return printJson(approvals);
      for (const approval of approvals) print(line(approval));
      if (approvals.length === 0) print('none');
    });

  group
    .command('show <approval_id>')
    .description('Show the request and its outcome; to the requester also, once, an API key that it created')
    .addOption(jsonOption())
    .action(async (id: string, { json: asJson }: { json?: true }) => {
      const { api_key, ...approval } = await openBank().getApproval({ approval_id: id });
      if (asJson) return printJson({ ...approval, ...(api_key === undefined ? {} : { api_key }) });
      print(line(approval));
      print(`  ${approval.request.method} ${approval.request.path} ${JSON.stringify(approval.request.body)}`);
      if (approval.outcome) print(`  outcome: ${JSON.stringify(approval.outcome)}`);
      if (api_key === undefined) return;
      say('The API key, which is not shown again:');
      print(api_key);
    });

  group
    .command('approve <approval_id>')
    .description('Approve a request, which is then executed in the name of the requester')
    .option('--reason <text>', 'reason to be recorded')
    .addOption(jsonOption())
    .action(async (id: string, { reason, json: asJson }: { reason?: string; json?: true }) => {
      decided(await openBank().approveRequest({ approval_id: id, reason }), asJson);
    });

  group
    .command('reject <approval_id>')
    .description('Reject a request')
    .requiredOption('--reason <text>', 'why')
    .addOption(jsonOption())
    .action(async (id: string, { reason, json: asJson }: { reason: string; json?: true }) => {
      decided(await openBank().rejectRequest({ approval_id: id, reason }), asJson);
    });
}

function line({ approval_id, status, requested_at, requested_by, summary }: Approval): string {
  return [approval_id, status.padEnd(8), requested_at, requested_by, summary].join('  ');
}

function decided(approval: Approval, asJson: true | undefined): void {
  if (asJson) return printJson(approval);
  const { outcome } = approval;
  const result =
    outcome === undefined ? '' : outcome.status === 'success' ? ' done' : ` ${outcome.code}: ${outcome.message}`;
  print(`${approval.approval_id} ${approval.status}${result}`);
}
