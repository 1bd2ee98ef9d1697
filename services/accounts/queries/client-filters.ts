/** The filters of clients, with `?` for the value. Each has its own index. */
export const clientFilters = {
  email: 'exact_key(email) = exact_key(?)',
  registration_number: 'exact_key(registration_number) = exact_key(?)',
  q: "array_to_tsvector(name_words(coalesce(company_name, first_name || ' ' || last_name))) @@ name_query(?)",
};
