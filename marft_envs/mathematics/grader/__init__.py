"""The mathematics grader: from a reply to a verdict.

| file | step |
|---|---|
| reply_grader | ``grade`` and ``grade_many``: the entry points, verdicts, faults |
| answer_extraction | find the answer in a reply |
| normalization | one spelling for Unicode, LaTeX spacing and wrappers |
| latex_layout, latex_environments, determinant, unit_notation | parts of the normalization of LaTeX |
| equality | compare the answer with the gold in layers, under a ``grading_policy`` |
| number, units, unit_table, compound_quantities, quantity_equality | numbers with percent signs and units |
| special_answers, congruences, named_ratios | choices, times, ratios, numerals in a base, congruences, words |
| named_values, assignments, qualifiers | names of values: m + n = 37, (x, y) = (1, 2); k in Z |
| shape, piecewise | lists, tuples, sets, matrices, relations; functions defined by cases |
| real_intervals, sign_table, polynomials | intervals, inequalities and their solutions; exact equations |
| expression_parser, tree_value, number_systems, expression_equality | expressions by their values |
| input_limits, symbolic | the symbolic worker, for what the other layers leave open |
| gold_check | find golds that cannot be graded |
"""
